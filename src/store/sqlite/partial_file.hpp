// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An incomplete database file, which has another name until it is complete.
///
///     const PartialFile partial(path + ".partial");
///     …
///     return partial.move_to(path);

#include <string>

#include "pawl/error.hpp"

namespace pawl::sqlite {

/// Removes the rest of an interrupted one, and its own file unless that was moved. Not thread-safe.
class PartialFile {
 public:
  explicit PartialFile(std::string path);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();
  const std::string& path() const { return path_; }

  /// Renames the file durably; never replaces an existing file. All connections to it must be closed.
  Result<void> move_to(const std::string& path) const;

 private:
  void remove() const;
  std::string path_;
};

}  // namespace pawl::sqlite
