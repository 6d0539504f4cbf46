// SPDX-License-Identifier: Apache-2.0
#include "pawl/permits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pawl/assert.hpp"

namespace pawl {
namespace {

std::unexpected<Error> refuse(std::string_view pool, std::string_view holder, std::string_view why) {
  return fail(Code::invalid_argument, fmt::format("permit pool \"{}\": {}", pool, why),
              {{"pool", std::string(pool)}, {"holder", std::string(holder)}});
}

Result<void> check_size(std::string_view pool, std::uint32_t size) {
  if (size != 0) return {};
  return fail(Code::invalid_argument,
              fmt::format("permit pool \"{}\": the size is 0; it must be at least 1", pool),
              {{"pool", std::string(pool)}});
}

Result<void> check_counts(std::string_view pool, std::string_view holder, std::uint32_t want,
                          std::uint32_t minimum) {
  if (holder.empty()) return refuse(pool, holder, "the holder has no name");
  if (minimum == 0) {
    return refuse(pool, holder, fmt::format("\"{}\" asks with a minimum of 0; ask for at least 1", holder));
  }
  if (minimum > want) {
    return refuse(pool, holder,
                  fmt::format("\"{}\" wants {} permits but at least {}; the minimum must not be more", holder,
                              want, minimum));
  }
  return {};
}

}  // namespace

PermitPool::PermitPool(const PermitPool& other)
    : name_(other.name_),
      size_(other.size_),
      granted_(other.granted_),
      revoking_(other.revoking_),
      last_rank_(other.last_rank_),
      entries_(other.entries_) {
  for (auto& named : entries_) {
    if (named.second.place.rank != 0) queue_.emplace(named.second.place, &named);
  }
}

PermitPool& PermitPool::operator=(PermitPool other) noexcept {
  name_ = std::move(other.name_);
  size_ = other.size_;
  granted_ = other.granted_;
  revoking_ = other.revoking_;
  last_rank_ = other.last_rank_;
  entries_ = std::move(other.entries_);
  queue_ = std::move(other.queue_);
  return *this;
}

/// The queue follows from the entries.
bool PermitPool::operator==(const PermitPool& other) const {
  return name_ == other.name_ && size_ == other.size_ && granted_ == other.granted_ &&
         revoking_ == other.revoking_ && last_rank_ == other.last_rank_ && entries_ == other.entries_;
}

Result<PermitPool> PermitPool::open(std::string name, std::uint32_t size) {
  PAWL_CHECK(check_size(name, size));
  return PermitPool(std::move(name), size);
}

Result<PermitPool::Restored> PermitPool::restore(std::string name, std::uint32_t size,
                                                 const std::vector<Waiter>& waiters) {
  PAWL_TRY(PermitPool pool, open(std::move(name), size));
  for (const Waiter& waiter : waiters) {
    PAWL_CHECK(check_counts(pool.name_, waiter.holder, waiter.want, waiter.minimum));
    if (pool.entries_.contains(waiter.holder)) {
      return refuse(pool.name_, waiter.holder,
                    fmt::format("\"{}\" is twice among the stored waiters", waiter.holder));
    }
    pool.enqueue(waiter.holder, waiter.want, waiter.minimum, waiter.priority);
  }
  PermitChanges changes = pool.grant_in_order();
  return Restored{std::move(pool), std::move(changes)};
}

Result<PermitChanges> PermitPool::request(std::string_view holder, std::uint32_t want, std::uint32_t minimum,
                                          std::int32_t priority) {
  PAWL_CHECK(check_request(holder, want, minimum));
  // No waiter is passed over.
  if (queue_.empty() && minimum <= free()) return PermitChanges{grant(note(holder, want, minimum))};
  enqueue(holder, want, minimum, priority);
  return grant_in_order();
}

Result<PermitChanges> PermitPool::release(std::string_view holder, std::uint32_t permits) {
  PAWL_TRY(const auto found, find(holder));
  Entry& entry = found->second;
  if (permits == 0) return refuse(name_, holder, fmt::format("\"{}\" releases 0 permits", holder));
  if (permits > entry.held) {
    return refuse(name_, holder,
                  fmt::format("\"{}\" releases {} permits but holds {}", holder, permits, entry.held));
  }
  take_back(entry, permits);
  drop_if_idle(found);
  return grant_in_order();
}

Result<PermitChanges> PermitPool::resize(std::uint32_t size) {
  PAWL_CHECK(check_size(name_, size));
  size_ = size;
  PermitChanges changes = revoke_excess();
  // A shrink can also grant: the head of the queue may no longer fit, which lets the next one through.
  for (PermitChange& grant : grant_in_order()) changes.push_back(std::move(grant));
  return changes;
}

Result<PermitChanges> PermitPool::forget(std::string_view holder) {
  PAWL_TRY(const auto found, find(holder));
  Entry& entry = found->second;
  if (entry.place.rank != 0) queue_.erase(std::exchange(entry.place, Place{}));
  take_back(entry, entry.held);
  drop_if_idle(found);
  return grant_in_order();
}

std::uint32_t PermitPool::held(std::string_view holder) const {
  const auto found = entries_.find(holder);
  return found == entries_.end() ? 0 : found->second.held;
}

std::vector<PermitPool::Waiter> PermitPool::waiting() const {
  std::vector<Waiter> waiters;
  waiters.reserve(queue_.size());
  for (const auto& [place, named] : queue_) {
    const auto& [holder, entry] = *named;
    waiters.push_back({holder, entry.want, entry.minimum, place.priority});
  }
  return waiters;
}

std::vector<PermitPool::Holder> PermitPool::holders() const {
  std::vector<Holder> holders;
  for (const auto& found : by_age()) {
    holders.push_back({found->first, found->second.held, found->second.revoking});
  }
  return holders;
}

Result<void> PermitPool::check_request(std::string_view holder, std::uint32_t want,
                                       std::uint32_t minimum) const {
  PAWL_CHECK(check_counts(name_, holder, want, minimum));
  const auto found = entries_.find(holder);
  const Entry entry = found == entries_.end() ? Entry{} : found->second;
  if (entry.place.rank != 0) {
    return refuse(name_, holder, fmt::format("\"{}\" waits already; forget the old request first", holder));
  }
  if (!fits(minimum, entry)) {
    return refuse(name_, holder,
                  fmt::format("\"{}\" holds {} and asks for at least {} more, but the pool has only {}; "
                              "this could never be granted",
                              holder, entry.held, minimum, size_));
  }
  return {};
}

Result<PermitPool::Entries::iterator> PermitPool::find(std::string_view holder) {
  const auto found = entries_.find(holder);
  if (found != entries_.end()) return found;
  return fail(Code::unknown_name,
              fmt::format("permit pool \"{}\": \"{}\" neither holds nor waits for permits", name_, holder),
              {{"pool", name_}, {"holder", std::string(holder)}});
}

std::vector<PermitPool::Entries::const_iterator> PermitPool::by_age() const {
  std::vector<Entries::const_iterator> found;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.held != 0) found.push_back(entry);
  }
  std::ranges::sort(found, {}, [](const auto& entry) { return entry->second.age; });
  return found;
}

bool PermitPool::fits(std::uint32_t minimum, const Entry& entry) const {
  return minimum <= size_ && entry.held <= size_ - minimum;
}

void PermitPool::enqueue(std::string_view holder, std::uint32_t want, std::uint32_t minimum,
                         std::int32_t priority) {
  auto& named = note(holder, want, minimum);
  PAWL_ASSERT(named.second.place.rank == 0, "a holder waits once", name_);
  named.second.place = {priority, ++last_rank_};
  queue_.emplace(named.second.place, &named);
}

PermitPool::Entries::value_type& PermitPool::note(std::string_view holder, std::uint32_t want,
                                                  std::uint32_t minimum) {
  auto& named = *entries_.try_emplace(std::string(holder)).first;
  named.second.want = want;
  named.second.minimum = minimum;
  return named;
}

/// Grants the free permits, at most what the holder wants.
PermitChange PermitPool::grant(Entries::value_type& named) {
  auto& [holder, entry] = named;
  const std::uint32_t permits = std::min(entry.want, free());
  if (entry.held == 0) entry.age = ++last_rank_;
  entry.held += permits;
  entry.place = {};
  granted_ += permits;
  PAWL_ASSERT(permits >= entry.minimum && granted_ <= size_, "a grant fits the request and the free permits",
              name_, permits, granted_, size_);
  return {PermitChange::Kind::grant, holder, permits};
}

void PermitPool::take_back(Entry& entry, std::uint32_t permits) {
  PAWL_ASSERT(permits <= entry.held && entry.held <= granted_, "only held permits are given back", name_,
              permits, entry.held, granted_);
  const std::uint32_t revoked = std::min(permits, entry.revoking);
  entry.held -= permits;
  granted_ -= permits;
  entry.revoking -= revoked;
  revoking_ -= revoked;
}

void PermitPool::drop_if_idle(Entries::iterator found) {
  if (found->second.held != 0 || found->second.place.rank != 0) return;
  PAWL_ASSERT(found->second.revoking == 0, "a holder without permits has none to give back", name_,
              found->second.revoking);
  entries_.erase(found);
}

PermitChanges PermitPool::grant_in_order() {
  PermitChanges changes;
  for (auto next = queue_.begin(); next != queue_.end() && free() != 0;) {
    const auto& entry = next->second->second;
    if (!fits(entry.minimum, entry)) {
      ++next;
      continue;
    }
    if (entry.minimum > free()) break;
    changes.push_back(grant(*next->second));
    next = queue_.erase(next);
  }
  PAWL_ASSERT(granted_ <= size_ || revoking_ >= granted_ - size_, "only a shrink can leave too much granted",
              granted_, size_, revoking_);
  return changes;
}

PermitChanges PermitPool::revoke_excess() {
  PermitChanges changes;
  const std::uint32_t staying = granted_ - revoking_;
  std::uint32_t excess = staying > size_ ? staying - size_ : 0;
  if (excess == 0) return changes;
  const auto oldest_first = by_age();
  for (auto holder = oldest_first.rbegin(); holder != oldest_first.rend() && excess != 0; ++holder) {
    Entry& entry = entries_.at((*holder)->first);
    const std::uint32_t permits = std::min(excess, entry.held - entry.revoking);
    if (permits == 0) continue;
    entry.revoking += permits;
    revoking_ += permits;
    excess -= permits;
    changes.push_back({PermitChange::Kind::revoke, (*holder)->first, permits});
  }
  PAWL_ASSERT(excess == 0, "every granted permit has a holder", excess);
  return changes;
}

}  // namespace pawl
