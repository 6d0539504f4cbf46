// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/engine/records.hpp"
#include "pawl/assert.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Text in one allocation behind one pointer: a million heads have two of these each.
class CompactText {
 public:
  CompactText() = default;
  explicit CompactText(std::string_view text);
  std::string_view view() const;
  bool empty() const { return bytes_ == nullptr; }

 private:
  std::unique_ptr<char[]> bytes_;
};

/// An instance's data: the stored text, and the decoded value if a transition has produced it. Shared and
/// immutable. One allocation, because the data of an instance is usually not in the processor's cache.
class HeadData {
 public:
  HeadData() = default;
  HeadData(std::string_view text, std::shared_ptr<const void> value);
  HeadData(const HeadData& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  HeadData(HeadData&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  HeadData& operator=(HeadData other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~HeadData() {
    if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) release();
  }

  explicit operator bool() const { return block_ != nullptr; }
  std::string_view text() const {
    return block_ != nullptr ? std::string_view(reinterpret_cast<const char*>(block_ + 1), block_->size)
                             : std::string_view{};
  }
  const void* value() const { return block_ != nullptr ? block_->value.get() : nullptr; }
  std::shared_ptr<const void> share_value() const { return block_ != nullptr ? block_->value : nullptr; }

  /// Prefetches it into the processor's cache; see `HeadTable::fetch_head`.
  void fetch() const { __builtin_prefetch(block_); }

  /// Its estimated memory; the size of the value is not known.
  std::size_t bytes() const {
    return block_ != nullptr ? (block_->value ? 2U : 1U) * std::size_t{block_->size} : 0;
  }

 private:
  /// The text follows it.
  struct Block {
    std::atomic<std::uint32_t> owners;
    std::uint32_t size;
    std::shared_ptr<const void> value;
  };
  void release();

  Block* block_ = nullptr;
};

/// The newest durable entry of one instance. Numbers of machines and states are those of the registry.
struct Head {
  InstanceId id;
  std::uint16_t machine = 0;
  std::uint16_t state = 0;
  std::uint32_t generation = 1;
  std::int64_t version = 0;
  std::int64_t seq = 0;
  Time created_at{};
  Time at{};
  CompactText key;
  HeadData data;                   // empty: evicted, stored in the log
  std::unique_ptr<Extras> extras;  // null: none
  std::uint32_t partition = 0;     // 0: the instance is its own partition
  bool live = true;                // false: a free slot
};

/// All heads: a slab in the order of (created_at, id) and an open-addressing index over it. Not thread-safe.
class HeadTable {
 public:
  Head* find(const InstanceId& id);
  const Head* find(const InstanceId& id) const;

  /// The id must be new. Pointers to heads stay valid until they are erased, or until one is inserted that
  /// was created before them.
  Head& insert(Head head);
  void erase(const InstanceId& id);

  // Prefetching for many lookups: each step prefetches the memory that the next one reads, so that their
  // cache misses overlap. Call `fetch_index` furthest ahead, then `fetch_head`, then `find`.
  void fetch_index(const InstanceId& id) const;
  void fetch_head(const InstanceId& id) const;

  std::size_t size() const { return size_; }
  /// Slots ever used; a slot may be free.
  std::size_t slots() const { return slab_.size(); }
  const Head& slot(std::size_t index) const {
    PAWL_ASSERT(index < slab_.size(), "a slot is one of the table", index, slab_.size());
    return slab_[index];
  }
  Head& slot(std::size_t index) { return const_cast<Head&>(std::as_const(*this).slot(index)); }

  /// The first slot after this place in the order of creation.
  std::size_t first_after(Time created_at, const InstanceId& id) const;
  /// The number of slots before this place.
  std::size_t count_before(Time created_at, const InstanceId& id) const;

  /// Removes free slots; invalidates pointers to heads.
  void compact();

  /// The bytes of the table, without keys and data.
  std::size_t memory() const;

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kErased = 1;  // slot numbers in the index begin at 2

  std::size_t probe(const InstanceId& id) const;
  void grow();

  std::deque<Head> slab_;
  std::vector<std::uint32_t> index_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;  // entries of the index that are not kFree
};

}  // namespace pawl
