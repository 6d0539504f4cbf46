// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One file of the simulated disk: what reads see, what is durable, and the changes between the two.

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

/// A value. Not synchronised; the disk's mutex guards it.
class FileContent {
 public:
  const std::string& cached() const { return cached_; }
  const std::string& durable() const { return durable_; }

  void write(std::uint64_t offset, std::string_view bytes);
  void truncate(std::uint64_t size);

  /// Everything pending becomes durable.
  void sync();

  /// Decides what of the pending changes becomes durable; the rest never will. Reads see no difference.
  void settle(Unsynced unsynced, Random& dice);

  /// Reads see what is durable, and nothing else exists any more.
  void drop_cache();

  /// Inverts bits of a byte that `cached` has.
  void flip(std::uint64_t offset, std::uint8_t bits);

 private:
  std::string cached_;
  std::string durable_;
  std::vector<Change> pending_;
};

}  // namespace pawl::sim
