// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One file of the simulated disk: the cached content, the durable content, and the changes between the two.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/random.hpp"
#include "pawl/sim_disk.hpp"

namespace pawl::sim {

/// A change that has not been synced.
struct Change {
  std::uint64_t offset = 0;  ///< of a truncation: the new size
  std::string bytes{};
  bool truncates = false;
  bool grows = false;  ///< made the file longer
};

/// A value. Not thread-safe; guarded by the disk's mutex.
class FileContent {
 public:
  const std::string& cached() const { return cached_; }
  const std::string& durable() const { return durable_; }

  void write(std::uint64_t offset, std::string_view bytes);
  void truncate(std::uint64_t size);

  /// Makes all pending changes durable.
  void sync();

  /// Decides which pending changes become durable; the others never will. Reads still see all of them.
  void settle(Unsynced unsynced, Random& random);

  /// Drops the cached content: reads see the durable content only.
  void drop_cache();

  /// Inverts bits of a byte within `cached`.
  void flip(std::uint64_t offset, std::uint8_t bits);

 private:
  std::string cached_;
  std::string durable_;
  std::vector<Change> pending_;
};

}  // namespace pawl::sim
