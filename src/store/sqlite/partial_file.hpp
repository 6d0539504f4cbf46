// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A database file that is not complete yet, under another name until it is.
///
///     const PartialFile partial(path + ".partial");
///     …
///     return partial.move_to(path);

#include <string>

#include "pawl/error.hpp"

namespace pawl::sqlite {

/// Removes what an interrupted one has left, and itself, unless it was moved. Not thread-safe.
class PartialFile {
 public:
  explicit PartialFile(std::string path);
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();
  const std::string& path() const { return path_; }

  /// Durably, and never over a file that is there. All connections to it must be closed.
  Result<void> move_to(const std::string& path) const;

 private:
  void remove() const;
  std::string path_;
};

}  // namespace pawl::sqlite
