// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A pool of permits: which holders may run, how many at once, in which order. Pure logic without clock,
/// thread or I/O: each call returns the changes to report to the holders.
///
///     auto pool = pawl::PermitPool::open("downloads", 5).value();
///     const auto changes = pool.request("run-17", 3, 1).value();
///     for (const auto& change : changes) {
///       // {grant, "run-17", 3}: run-17 may start with three permits
///     }
///     pool.release("run-17", 3);   // the changes grant them to the first waiter
///
/// The rules:
/// - Higher priorities first; within a priority, first in, first out. The head of the queue waits until its
///   minimum is free and no waiter overtakes it, so waiters of the highest priority do not starve. The one
///   exception: a waiter whose minimum no longer fits the size (after a shrink) is passed over, keeps its
///   place, and is served again once the pool has grown.
/// - A grant gives the free permits, at least the minimum and at most what was wanted, and settles the
///   request: a partial grant is not topped up. A holder that wants more requests again, at the end of the
///   queue. It should not block meanwhile: two holders that keep their permits until they get more deadlock.
/// - Shrinking below what is granted asks holders to give permits back, the newest first (the age of a holder
///   is that of its first grant since it last held none). That is a request: permits return only by `release`
///   or `forget`. Until then they count as revoking and are not requested again; growing does not withdraw
///   the request.
/// - The pool never grants more than its size, except while a shrink waits for the revoked permits.
/// - Grants are volatile, the queue is not: store `waiting()` and, after a crash, `restore` it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/error.hpp"

namespace pawl {

/// A change to report to a holder.
struct PermitChange {
  enum class Kind : std::uint8_t {
    grant,   ///< the holder has these permits now, in addition to those it held
    revoke,  ///< the holder is asked to give back this many
  };
  Kind kind;
  std::string holder;
  std::uint32_t permits;

  bool operator==(const PermitChange&) const = default;
};

using PermitChanges = std::vector<PermitChange>;

/// Not thread-safe: const methods may run concurrently, commands need exclusive use. Copies are independent.
/// A refused command changes nothing.
class PermitPool {
 public:
  /// A request that is not granted yet.
  struct Waiter {
    std::string holder;
    std::uint32_t want;
    std::uint32_t minimum;
    std::int32_t priority = 0;
    bool operator==(const Waiter&) const = default;
  };

  struct Holder {
    std::string holder;
    std::uint32_t held;
    std::uint32_t revoking;  ///< part of `held` that it was asked to give back
    bool operator==(const Holder&) const = default;
  };

  struct Restored;

  PermitPool(const PermitPool& other);
  PermitPool(PermitPool&&) noexcept = default;
  PermitPool& operator=(PermitPool other) noexcept;
  ~PermitPool() = default;

  /// An empty pool. Error: `invalid_argument` for size 0.
  static Result<PermitPool> open(std::string name, std::uint32_t size);

  /// After a crash: all permits are free and the stored waiters are in the queue again, in the given order.
  /// The changes grant to those that fit at once. Errors: `invalid_argument` for size 0, a duplicate holder,
  /// or counts that `request` would refuse; a minimum above the size is kept and passed over.
  static Result<Restored> restore(std::string name, std::uint32_t size, const std::vector<Waiter>& waiters);

  /// Requests `want` permits, but accepts `minimum`. Grants now or enters the queue. Errors:
  /// `invalid_argument` if the holder has no name, a count is 0, minimum > want, the holder waits already,
  /// or the minimum, with the permits that the holder has, exceeds the size and could never be granted.
  Result<PermitChanges> request(std::string_view holder, std::uint32_t want, std::uint32_t minimum,
                                std::int32_t priority = 0);

  /// Gives `permits` back. Errors: `unknown_name` if the holder has none; `invalid_argument` for 0 or for
  /// more than it holds.
  Result<PermitChanges> release(std::string_view holder, std::uint32_t permits);

  /// Changes the size. Growing grants, shrinking may revoke. Error: `invalid_argument` for 0.
  Result<PermitChanges> resize(std::uint32_t size);

  /// Drops a holder that crashed or was cancelled: its permits are free, its place in the queue is gone.
  /// Error: `unknown_name` if it neither holds nor waits.
  Result<PermitChanges> forget(std::string_view holder);

  const std::string& name() const noexcept { return name_; }
  std::uint32_t size() const noexcept { return size_; }
  std::uint32_t granted() const noexcept { return granted_; }
  std::uint32_t revoking() const noexcept { return revoking_; }
  std::uint32_t free() const noexcept { return size_ > granted_ ? size_ - granted_ : 0; }

  /// The permits of this holder; 0 if it is unknown.
  std::uint32_t held(std::string_view holder) const;

  /// Whether the holder holds or waits for permits.
  bool knows(std::string_view holder) const { return entries_.contains(holder); }

  /// The queue, first to last; O(waiters).
  std::vector<Waiter> waiting() const;

  /// The holders of permits, oldest first; O(holders log holders).
  std::vector<Holder> holders() const;

  bool operator==(const PermitPool& other) const;

 private:
  /// A place in the queue: ordered by descending priority, then by arrival. Rank 0: not in the queue.
  struct Place {
    std::int32_t priority = 0;
    std::uint64_t rank = 0;
    bool operator==(const Place&) const = default;
    bool operator<(const Place& other) const {
      return priority != other.priority ? priority > other.priority : rank < other.rank;
    }
  };

  /// One per holder that holds or waits. Ranks rise with every request and order both the queue and the ages;
  /// 0 means none. `want` and `minimum` are valid while it has a place.
  struct Entry {
    std::uint32_t held = 0;
    std::uint32_t revoking = 0;
    std::uint64_t age = 0;
    Place place{};
    std::uint32_t want = 0;
    std::uint32_t minimum = 0;
    bool operator==(const Entry&) const = default;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  PermitPool(std::string name, std::uint32_t size) : name_(std::move(name)), size_(size) {}

  Result<void> check_request(std::string_view holder, std::uint32_t want, std::uint32_t minimum) const;
  Result<Entries::iterator> find(std::string_view holder);
  std::vector<Entries::const_iterator> by_age() const;
  bool fits(std::uint32_t minimum, const Entry& entry) const;
  Entries::value_type& note(std::string_view holder, std::uint32_t want, std::uint32_t minimum);
  void enqueue(std::string_view holder, std::uint32_t want, std::uint32_t minimum, std::int32_t priority);
  void take_back(Entry& entry, std::uint32_t permits);
  void drop_if_idle(Entries::iterator found);
  PermitChange grant(Entries::value_type& named);
  PermitChanges grant_in_order();
  PermitChanges revoke_excess();

  std::string name_;
  std::uint32_t size_;
  std::uint32_t granted_ = 0;
  std::uint32_t revoking_ = 0;
  std::uint64_t last_rank_ = 0;
  Entries entries_;
  /// The entries with a place, in order; a hundred thousand may wait, so each name is stored once.
  std::map<Place, Entries::value_type*> queue_;
};

struct PermitPool::Restored {
  PermitPool pool;
  PermitChanges changes;
};

}  // namespace pawl
