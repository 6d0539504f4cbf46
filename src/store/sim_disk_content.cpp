// SPDX-License-Identifier: Apache-2.0
#include "store/sim_disk_content.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_set>

namespace pawl::sim {

namespace {

constexpr std::uint64_t kSector = 512;

/// The part of one change that reaches the disk.
struct Survival {
  std::vector<bool> sectors{};  ///< of a write: one per sector of the file that it touches
  bool size = false;  ///< of a truncation: it survives; of a write: the file grows, if only by zeros

  bool survives() const { return size || std::ranges::find(sectors, true) != sectors.end(); }
};

/// How the surviving changes of one file are chosen. If each sector were chosen independently, a whole
/// transaction would hardly ever survive, and damage that looks almost right finds the most bugs.
enum class Shape : std::uint8_t { none, all, prefix, writes, sectors };
constexpr Shape kShapes[] = {Shape::none,   Shape::all,    Shape::prefix, Shape::prefix,
                             Shape::writes, Shape::writes, Shape::writes, Shape::sectors};

std::uint64_t first_sector(const Change& change) { return change.offset / kSector; }

Survival uniform(const Change& change, bool survives) {
  if (change.truncates) return {.size = survives};
  const std::uint64_t last = (change.offset + change.bytes.size() - 1) / kSector;
  return {.sectors = std::vector<bool>(last - first_sector(change) + 1, survives)};
}

Survival random_sectors(const Change& change, Random& random) {
  Survival survival = uniform(change, false);
  for (auto sector : survival.sectors) sector = random.below(2) == 0;
  if (change.truncates) survival.size = random.below(2) == 0;
  return survival;
}

Survival torn(const Change& change, Random& random) {
  if (random.below(2) == 0) return random_sectors(change, random);
  Survival survival = uniform(change, false);
  const std::uint64_t kept = random.below(survival.sectors.size() + 1);
  std::fill_n(survival.sectors.begin(), kept, true);
  return survival;
}

Survival any(const Change& change, Random& random) {
  const std::uint64_t roll = random.below(8);
  if (roll < 4) return uniform(change, true);
  if (roll < 6) return torn(change, random);
  Survival survival = uniform(change, false);
  // File systems may record the new size before the data: the file grows by zeros.
  survival.size = roll == 6 && change.grows;
  return survival;
}

/// Restricts the choice to what a page cache and a journalling file system can produce: a sector is written
/// whole, so a later write to it includes the earlier ones; sizes change in order, so a later growth includes
/// the earlier truncations.
void make_possible(const std::vector<Change>& changes, std::vector<Survival>& survivals) {
  std::unordered_set<std::uint64_t> newer_sectors;
  bool newer_size = false;
  for (std::size_t i = changes.size(); i-- > 0;) {
    if (changes[i].truncates) {
      survivals[i].size = survivals[i].size || newer_size;
      newer_size = newer_size || survivals[i].size;
      continue;
    }
    for (std::size_t s = 0; s < survivals[i].sectors.size(); ++s) {
      const std::uint64_t sector = first_sector(changes[i]) + s;
      if (survivals[i].sectors[s]) {
        newer_sectors.insert(sector);
      } else if (newer_sectors.contains(sector)) {
        survivals[i].sectors[s] = true;
      }
    }
    newer_size = newer_size || (changes[i].grows && survivals[i].survives());
  }
}

std::vector<Survival> choose(const std::vector<Change>& changes, Random& random) {
  const Shape shape = kShapes[random.below(std::size(kShapes))];
  const std::size_t cut = random.below(changes.size() + 1);
  std::vector<Survival> survivals;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    switch (shape) {
      case Shape::none:
        survivals.push_back(uniform(changes[i], false));
        break;
      case Shape::all:
        survivals.push_back(uniform(changes[i], true));
        break;
      case Shape::prefix:
        survivals.push_back(i == cut ? torn(changes[i], random) : uniform(changes[i], i < cut));
        break;
      case Shape::writes:
        survivals.push_back(any(changes[i], random));
        break;
      case Shape::sectors:
        survivals.push_back(random_sectors(changes[i], random));
        break;
    }
  }
  make_possible(changes, survivals);
  return survivals;
}

void put(std::string& content, std::uint64_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size());
  content.replace(offset, bytes.size(), bytes);
}

void replay(std::string& content, const Change& change) {
  if (change.truncates) {
    content.resize(change.offset);
  } else {
    put(content, change.offset, change.bytes);
  }
}

void replay(std::string& content, const Change& change, const Survival& survival) {
  if (change.truncates) {
    if (survival.size) content.resize(change.offset);
    return;
  }
  const std::uint64_t end = change.offset + change.bytes.size();
  if (survival.size && content.size() < end) content.resize(end);
  for (std::size_t s = 0; s < survival.sectors.size(); ++s) {
    if (!survival.sectors[s]) continue;
    const std::uint64_t sector = (first_sector(change) + s) * kSector;
    const std::uint64_t from = std::max(sector, change.offset);
    const std::uint64_t to = std::min(sector + kSector, end);
    put(content, from, std::string_view(change.bytes).substr(from - change.offset, to - from));
  }
}

}  // namespace

void FileContent::write(std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  pending_.push_back(
      {.offset = offset, .bytes = std::string(bytes), .grows = offset + bytes.size() > cached_.size()});
  replay(cached_, pending_.back());
}

void FileContent::truncate(std::uint64_t size) {
  pending_.push_back({.offset = size, .truncates = true, .grows = size > cached_.size()});
  replay(cached_, pending_.back());
}

void FileContent::sync() {
  for (const Change& change : pending_) replay(durable_, change);
  pending_.clear();
}

void FileContent::settle(Unsynced unsynced, Random& random) {
  if (unsynced == Unsynced::keep_all) return sync();
  if (unsynced == Unsynced::random && !pending_.empty()) {
    const std::vector<Survival> survivals = choose(pending_, random);
    for (std::size_t i = 0; i < pending_.size(); ++i) replay(durable_, pending_[i], survivals[i]);
  }
  pending_.clear();
}

void FileContent::drop_cache() {
  cached_ = durable_;
  pending_.clear();
}

void FileContent::flip(std::uint64_t offset, std::uint8_t bits) {
  const auto inverted = [bits](char byte) {
    return static_cast<char>(static_cast<std::uint8_t>(byte) ^ bits);
  };
  cached_[offset] = inverted(cached_[offset]);
  if (offset < durable_.size()) durable_[offset] = inverted(durable_[offset]);
}

}  // namespace pawl::sim
