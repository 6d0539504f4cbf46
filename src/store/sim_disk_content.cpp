// SPDX-License-Identifier: Apache-2.0
#include "store/sim_disk_content.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_set>

namespace pawl::sim {

namespace {

constexpr std::uint64_t kSector = 512;

/// What of one change reaches the disk.
struct Fate {
  std::vector<bool> sectors{};  ///< of a write: one per sector of the file that it touches
  bool size = false;  ///< of a truncation: it survives; of a write: the file grows, if only by zeros

  bool survives() const { return size || std::ranges::find(sectors, true) != sectors.end(); }
};

/// How the survivors of one file are chosen. Choosing each sector alone would hardly ever leave a whole
/// transaction behind, and the damage that looks almost right is the one that finds bugs.
enum class Shape : std::uint8_t { none, all, prefix, writes, sectors };
constexpr Shape kShapes[] = {Shape::none,   Shape::all,    Shape::prefix, Shape::prefix,
                             Shape::writes, Shape::writes, Shape::writes, Shape::sectors};

std::uint64_t first_sector(const Change& change) { return change.offset / kSector; }

Fate uniform(const Change& change, bool survives) {
  if (change.truncates) return {.size = survives};
  const std::uint64_t last = (change.offset + change.bytes.size() - 1) / kSector;
  return {.sectors = std::vector<bool>(last - first_sector(change) + 1, survives)};
}

Fate random_sectors(const Change& change, Random& dice) {
  Fate fate = uniform(change, false);
  for (auto sector : fate.sectors) sector = dice.below(2) == 0;
  if (change.truncates) fate.size = dice.below(2) == 0;
  return fate;
}

Fate torn(const Change& change, Random& dice) {
  if (dice.below(2) == 0) return random_sectors(change, dice);
  Fate fate = uniform(change, false);
  const std::uint64_t kept = dice.below(fate.sectors.size() + 1);
  std::fill_n(fate.sectors.begin(), kept, true);
  return fate;
}

Fate any(const Change& change, Random& dice) {
  const std::uint64_t roll = dice.below(8);
  if (roll < 4) return uniform(change, true);
  if (roll < 6) return torn(change, dice);
  Fate fate = uniform(change, false);
  // File systems may record the new size before the data: the file has grown by zeros.
  fate.size = roll == 6 && change.grows;
  return fate;
}

/// Makes the choice one that a page cache and a journalling file system can produce: a sector is written
/// whole, so a later write to it brings the earlier ones along; sizes change in order, so a later growth
/// brings the earlier truncations along.
void make_possible(const std::vector<Change>& changes, std::vector<Fate>& fates) {
  std::unordered_set<std::uint64_t> newer_sectors;
  bool newer_size = false;
  for (std::size_t i = changes.size(); i-- > 0;) {
    if (changes[i].truncates) {
      fates[i].size = fates[i].size || newer_size;
      newer_size = newer_size || fates[i].size;
      continue;
    }
    for (std::size_t s = 0; s < fates[i].sectors.size(); ++s) {
      const std::uint64_t sector = first_sector(changes[i]) + s;
      if (fates[i].sectors[s]) {
        newer_sectors.insert(sector);
      } else if (newer_sectors.contains(sector)) {
        fates[i].sectors[s] = true;
      }
    }
    newer_size = newer_size || (changes[i].grows && fates[i].survives());
  }
}

std::vector<Fate> choose(const std::vector<Change>& changes, Random& dice) {
  const Shape shape = kShapes[dice.below(std::size(kShapes))];
  const std::size_t cut = dice.below(changes.size() + 1);
  std::vector<Fate> fates;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    switch (shape) {
      case Shape::none:
        fates.push_back(uniform(changes[i], false));
        break;
      case Shape::all:
        fates.push_back(uniform(changes[i], true));
        break;
      case Shape::prefix:
        fates.push_back(i == cut ? torn(changes[i], dice) : uniform(changes[i], i < cut));
        break;
      case Shape::writes:
        fates.push_back(any(changes[i], dice));
        break;
      case Shape::sectors:
        fates.push_back(random_sectors(changes[i], dice));
        break;
    }
  }
  make_possible(changes, fates);
  return fates;
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

void replay(std::string& content, const Change& change, const Fate& fate) {
  if (change.truncates) {
    if (fate.size) content.resize(change.offset);
    return;
  }
  const std::uint64_t end = change.offset + change.bytes.size();
  if (fate.size && content.size() < end) content.resize(end);
  for (std::size_t s = 0; s < fate.sectors.size(); ++s) {
    if (!fate.sectors[s]) continue;
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

void FileContent::settle(Unsynced unsynced, Random& dice) {
  if (unsynced == Unsynced::keep_all) return sync();
  if (unsynced == Unsynced::random && !pending_.empty()) {
    const std::vector<Fate> fates = choose(pending_, dice);
    for (std::size_t i = 0; i < pending_.size(); ++i) replay(durable_, pending_[i], fates[i]);
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
