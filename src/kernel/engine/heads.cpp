// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/heads.hpp"

#include <algorithm>
#include <cstring>

#include "pawl/assert.hpp"

namespace pawl {

CompactText::CompactText(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  PAWL_ASSERT(size == text.size(), "a stored text is smaller than 4 GiB");
  bytes_ = std::make_unique_for_overwrite<char[]>(sizeof size + text.size());
  std::memcpy(bytes_.get(), &size, sizeof size);
  if (!text.empty()) std::memcpy(bytes_.get() + sizeof size, text.data(), text.size());
}

std::string_view CompactText::view() const {
  if (!bytes_) return {};
  std::uint32_t size = 0;
  std::memcpy(&size, bytes_.get(), sizeof size);
  return {bytes_.get() + sizeof size, size};
}

HeadData::HeadData(std::string_view text, std::shared_ptr<const void> value) {
  const auto size = static_cast<std::uint32_t>(text.size());
  PAWL_ASSERT(size == text.size(), "a stored text is smaller than 4 GiB");
  block_ = new (::operator new(sizeof(Block) + text.size())) Block{1, size, std::move(value)};
  if (!text.empty()) std::memcpy(static_cast<void*>(block_ + 1), text.data(), text.size());
}

void HeadData::release() {
  block_->~Block();
  ::operator delete(block_);
}

/// The position of the id in the index, or the free position for it.
std::size_t HeadTable::probe(const InstanceId& id) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = std::hash<InstanceId>{}(id)&mask;
  std::size_t reusable = index_.size();
  for (;; at = (at + 1) & mask) {
    const auto entry = index_[at];
    if (entry == kFree) return reusable < index_.size() ? reusable : at;
    PAWL_ASSERT(entry - kErased <= slab_.size(), "the index names slots of the table", entry);
    if (entry == kErased) {
      if (reusable == index_.size()) reusable = at;
    } else if (slab_[entry - 2].id == id) {
      return at;
    }
  }
}

void HeadTable::fetch_index(const InstanceId& id) const {
  if (!index_.empty()) __builtin_prefetch(&index_[std::hash<InstanceId>{}(id) & (index_.size() - 1)]);
}

/// Looks at the first probe only: further ones are rare, and a miss only costs time.
void HeadTable::fetch_head(const InstanceId& id) const {
  const auto entry = index_.empty() ? kFree : index_[std::hash<InstanceId>{}(id) & (index_.size() - 1)];
  if (entry >= 2) __builtin_prefetch(&slab_[entry - 2]);
}

const Head* HeadTable::find(const InstanceId& id) const {
  if (index_.empty()) return nullptr;
  PAWL_ASSERT(used_ < index_.size(), "a search in the index ends", used_);
  const auto entry = index_[probe(id)];
  return entry >= 2 ? &slab_[entry - 2] : nullptr;
}

Head* HeadTable::find(const InstanceId& id) { return const_cast<Head*>(std::as_const(*this).find(id)); }

Head& HeadTable::insert(Head head) {
  PAWL_ASSERT(head.live, "an inserted head is not a free slot");
  if ((used_ + 1) * 4 >= index_.size() * 3) grow();
  const auto at = probe(head.id);
  PAWL_ASSERT(index_[at] < 2, "an inserted head is new");
  if (index_[at] == kFree) ++used_;
  ++size_;
  // A head that its own batch has changed again may be inserted after later ones of that batch.
  slab_.emplace_back();
  auto slot = slab_.size() - 1;
  for (; slot > 0 && head.created_at < slab_[slot - 1].created_at; --slot) {
    auto& later = slab_[slot - 1];
    if (later.live) index_[probe(later.id)] = static_cast<std::uint32_t>(slot + 2);
    slab_[slot] = std::move(later);
  }
  slab_[slot] = std::move(head);
  index_[at] = static_cast<std::uint32_t>(slot + 2);
  return slab_[slot];
}

void HeadTable::erase(const InstanceId& id) {
  if (index_.empty()) return;
  const auto at = probe(id);
  if (index_[at] < 2) return;
  auto& head = slab_[index_[at] - 2];
  PAWL_ASSERT(head.live && size_ > 0, "an erased head was there", size_);
  const auto created_at = head.created_at;
  head = Head{};
  head.created_at = created_at;  // the slab stays in order
  head.live = false;
  index_[at] = kErased;
  --size_;
}

void HeadTable::grow() {
  std::size_t wanted = 64;
  while (size_ * 2 >= wanted) wanted *= 2;
  index_.assign(wanted, kFree);
  used_ = 0;
  for (std::size_t slot = 0; slot < slab_.size(); ++slot) {
    if (!slab_[slot].live) continue;
    index_[probe(slab_[slot].id)] = static_cast<std::uint32_t>(slot + 2);
    ++used_;
  }
}

std::size_t HeadTable::first_after(Time created_at, const InstanceId& id) const {
  const auto place = std::ranges::upper_bound(slab_, created_at, {}, &Head::created_at);
  // Heads with the same time of creation are in the order of insertion; the id identifies the place.
  auto slot = static_cast<std::size_t>(place - slab_.begin());
  for (auto same = slot; same > 0 && slab_[same - 1].created_at == created_at; --same) {
    if (slab_[same - 1].id == id) return same;
  }
  return slot;
}

std::size_t HeadTable::count_before(Time created_at, const InstanceId& id) const {
  const auto place = std::ranges::upper_bound(slab_, created_at, {}, &Head::created_at);
  const auto end = static_cast<std::size_t>(place - slab_.begin());
  for (auto same = end; same > 0 && slab_[same - 1].created_at == created_at; --same) {
    if (slab_[same - 1].id == id) return same - 1;
  }
  // The head is gone: listing some heads of that time twice is better than leaving one out.
  return end;
}

void HeadTable::compact() {
  std::erase_if(slab_, [](const Head& head) { return !head.live; });
  PAWL_ASSERT(slab_.size() == size_, "only free slots are given back", slab_.size(), size_);
  grow();
}

std::size_t HeadTable::memory() const {
  return slab_.size() * sizeof(Head) + index_.size() * sizeof(index_[0]);
}

}  // namespace pawl
