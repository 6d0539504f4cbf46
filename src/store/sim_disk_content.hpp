// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One file of the simulated disk: what reads see, what is durable, and the changes between the two.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/sim_disk.hpp"

namespace pawl::sim {

/// The standard fixes its sequence, so a seed means the same with every compiler.
using Dice = std::mt19937_64;

/// A number from 0 to `limit` - 1. The bias of the remainder does not matter here; being the same everywhere
/// does, which std::uniform_int_distribution is not.
std::uint64_t below(Dice& dice, std::uint64_t limit);

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
  void settle(Unsynced unsynced, Dice& dice);

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
