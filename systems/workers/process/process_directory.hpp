// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The directory of one worker: the lock that a living shim holds, and the status that it writes. Several
/// threads and processes may have the same one open.

#include <optional>
#include <string>
#include <string_view>

#include "workers/process/os.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers {

/// A consistent snapshot. The string views of the record are empty; `mark` and `step` have their content.
struct DirectoryState {
  bool held = false;   ///< a shim holds the lock
  bool known = false;  ///< there is a status
  bool alive = false;  ///< the shim that wrote the status lives
  Record record{};
  std::string mark{};
  std::string step{};

  bool ended() const { return known && record.end != End::none; }
  bool runs() const { return held && alive && !ended(); }
  /// The shim is gone and has not recorded how the command ended.
  bool lost() const { return !held && known && !ended(); }
};

class ProcessDirectory {
 public:
  /// Creates what is missing: the directory, its lock and, if the name is a hash, the file with the id.
  static Result<ProcessDirectory> make(int parent, std::string_view id);
  /// Empty if absent.
  static Result<std::optional<ProcessDirectory>> open(int parent, std::string_view id);

  int directory() const { return directory_.get(); }
  const std::string& name() const { return name_; }

  /// Never takes a shim that starts or ends meanwhile for a lost one.
  Result<DirectoryState> read_state() const;

  /// Takes the lock like a shim; empty if it is held.
  Result<Descriptor> take_lock() const;
  /// Removes the directory and its files, the lock last. The caller holds the lock.
  Result<void> remove(int parent) const;

 private:
  ProcessDirectory(Descriptor directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}
  Result<bool> held() const;

  Descriptor directory_;
  std::string name_;
};

}  // namespace pawl::workers
