// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The directory of one worker, as the keeper sees it: the lock that a living shim holds, and the status that
/// it writes. Several threads and processes may have the same one open.

#include <optional>
#include <string>
#include <string_view>

#include "workers/process/os.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers {

/// What holds at one moment. Views of the record are empty; what they say is in the strings.
struct Seen {
  bool held = false;   ///< a shim holds the lock
  bool known = false;  ///< there is a status
  bool alive = false;  ///< the shim that wrote the status is the one that lives
  Record record{};
  std::string mark{};
  std::string step{};

  bool ended() const { return known && record.end != End::none; }
  bool runs() const { return held && alive && !ended(); }
  /// Its shim is gone without having written how the command ended.
  bool lost() const { return !held && known && !ended(); }
};

class Place {
 public:
  /// Makes what is not there: the directory, its lock, and the id where the name does not tell it.
  static Result<Place> make(int parent, std::string_view id);
  /// Nothing where there is none.
  static Result<std::optional<Place>> open(int parent, std::string_view id);

  int directory() const { return directory_.get(); }
  const std::string& name() const { return name_; }

  /// Consistent: a shim that ends or begins meanwhile is not taken for a lost one.
  Result<Seen> look() const;

  /// Takes the lock as a shim would; empty where somebody else has it.
  Result<Descriptor> take_lock() const;
  /// Everything in it, the lock last, and itself. Only under the lock.
  Result<void> remove(int parent) const;

 private:
  Place(Descriptor directory, std::string name) : directory_(std::move(directory)), name_(std::move(name)) {}
  Result<bool> held() const;

  Descriptor directory_;
  std::string name_;
};

}  // namespace pawl::workers
