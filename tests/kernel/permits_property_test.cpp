// SPDX-License-Identifier: Apache-2.0
// Random command sequences against a permit pool; the model is a ledger kept only from what callers see.
#include "pawl/permits.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>

namespace {

using pawl::PermitChange;
using pawl::PermitChanges;
using pawl::PermitPool;
using pawl::Result;

const std::vector<std::string> kNames{"a", "b", "c", "d", "e", "f", "g", "h"};

/// What a caller who only sees commands and changes knows.
struct Ledger {
  std::uint32_t size = 0;
  std::map<std::string, std::uint32_t> held;
  std::map<std::string, std::uint32_t> asked_back;
  std::vector<PermitPool::Waiter> line;

  std::uint32_t granted() const {
    std::uint32_t sum = 0;
    for (const auto& [holder, permits] : held) sum += permits;
    return sum;
  }
  std::uint32_t free() const { return size > granted() ? size - granted() : 0; }
  bool fits(const PermitPool::Waiter& waiter) const {
    const auto found = held.find(waiter.holder);
    return waiter.minimum + (found == held.end() ? 0 : found->second) <= size;
  }
  auto first_that_fits() const {
    return std::ranges::find_if(line, [&](const auto& waiter) { return fits(waiter); });
  }

  void give_back(const std::string& holder, std::uint32_t permits) {
    held[holder] -= permits;
    asked_back[holder] -= std::min(asked_back[holder], permits);
    if (held[holder] == 0) held.erase(holder);
  }

  /// Checks each change against the rules as they stand at that moment, then books it.
  void book(const PermitChange& change) {
    if (change.kind == PermitChange::Kind::revoke) {
      asked_back[change.holder] += change.permits;
      RC_ASSERT(asked_back[change.holder] <= held[change.holder]);
      return;
    }
    const auto head = first_that_fits();
    RC_ASSERT(head != line.end());
    RC_ASSERT(head->holder == change.holder);  // nobody overtakes
    RC_ASSERT(change.permits >= head->minimum);
    RC_ASSERT(change.permits == std::min(head->want, free()));
    held[change.holder] += change.permits;
    line.erase(head);
  }
};

struct Run {
  PermitPool pool;
  Ledger ledger;
  PermitChanges changes;  ///< of the last command that was accepted

  explicit Run(std::uint32_t size) : pool(PermitPool::open("p", size).value()) { ledger.size = size; }

  /// True when accepted. A refused command must leave the pool as it was.
  bool accept(const PermitPool& before, const Result<PermitChanges>& result) {
    if (!result) {
      RC_ASSERT(pool == before);
      return false;
    }
    changes = *result;
    return true;
  }

  void request(const std::string& holder, std::uint32_t want, std::uint32_t minimum) {
    const PermitPool before = pool;
    if (!accept(before, pool.request(holder, want, minimum))) return;
    ledger.line.push_back({holder, want, minimum});
    book();
  }

  void release(const std::string& holder, std::uint32_t permits) {
    const PermitPool before = pool;
    const bool legal = permits > 0 && permits <= before.held(holder);
    const bool accepted = accept(before, pool.release(holder, permits));
    RC_ASSERT(accepted == legal);
    if (!accepted) return;
    ledger.give_back(holder, permits);
    book();
  }

  void resize(std::uint32_t size) {
    const PermitPool before = pool;
    if (!accept(before, pool.resize(size))) return;
    ledger.size = size;
    book();
  }

  void forget(const std::string& holder) {
    const PermitPool before = pool;
    if (!accept(before, pool.forget(holder))) return;
    if (ledger.held.contains(holder)) ledger.give_back(holder, ledger.held[holder]);
    std::erase_if(ledger.line, [&](const auto& waiter) { return waiter.holder == holder; });
    book();
  }

  void book() {
    for (const PermitChange& change : changes) ledger.book(change);
    check();
  }

  void check() const {
    RC_ASSERT(pool.size() == ledger.size);
    RC_ASSERT(pool.granted() == ledger.granted());  // conservation
    RC_ASSERT(pool.free() == ledger.free());
    RC_ASSERT(pool.waiting() == ledger.line);  // no waiter lost, none added, order kept
    std::uint32_t asked_back = 0;
    for (const auto& [holder, permits] : ledger.asked_back) asked_back += permits;
    RC_ASSERT(pool.revoking() == asked_back);
    RC_ASSERT(pool.granted() <= pool.size() + pool.revoking());
    for (const auto& name : kNames) {
      RC_ASSERT(pool.held(name) == (ledger.held.contains(name) ? ledger.held.at(name) : 0));
    }
    const auto head = ledger.first_that_fits();
    RC_ASSERT((head == ledger.line.end() || head->minimum > pool.free()));  // nobody waits without need
  }

  void random_command() {
    const auto count = [] { return *rc::gen::inRange<std::uint32_t>(0, 9); };
    const auto holder = *rc::gen::elementOf(kNames);
    switch (*rc::gen::weightedElement<int>({{6, 0}, {6, 1}, {2, 2}, {1, 3}})) {
      case 0: {
        const std::uint32_t minimum = count();
        return request(holder, minimum + count(), minimum);
      }
      case 1: {
        // Mostly what it holds, sometimes any number.
        const std::uint32_t held = pool.held(holder);
        return release(holder, *rc::gen::weightedOneOf<std::uint32_t>(
                                   {{1, rc::gen::inRange<std::uint32_t>(0, 9)},
                                    {4, rc::gen::inRange<std::uint32_t>(std::min(held, 1u), held + 1)}}));
      }
      case 2:
        return resize(count());
      default:
        return forget(holder);
    }
  }
};

Run random_run() {
  Run run(*rc::gen::inRange<std::uint32_t>(1, 9));
  const int commands = *rc::gen::inRange(0, 60);
  for (int i = 0; i < commands; ++i) run.random_command();
  return run;
}

RC_GTEST_PROP(PermitsProperty, EveryCommandKeepsTheRules, ()) {
  const Run run = random_run();
  RC_CLASSIFY(!run.ledger.line.empty(), "somebody waits");
  RC_CLASSIFY(run.pool.revoking() != 0, "revocations outstanding");
}

RC_GTEST_PROP(PermitsProperty, WhenHoldersReleaseEverybodyWhoFitsIsServedInTheEnd, ()) {
  Run run = random_run();
  const std::size_t rounds = run.ledger.line.size() + 1;
  for (std::size_t i = 0; i < rounds; ++i) {
    for (const auto& holder : run.pool.holders()) run.release(holder.holder, holder.held);
  }
  for (const auto& waiter : run.pool.waiting()) RC_ASSERT(waiter.minimum > run.pool.size());
  RC_ASSERT(run.pool.granted() == 0u);
  RC_ASSERT(run.pool.revoking() == 0u);
}

RC_GTEST_PROP(PermitsProperty, ARestoredLineIsServedInTheStoredOrder, ()) {
  const Run run = random_run();
  const auto stored = run.pool.waiting();
  const auto restored = PermitPool::restore("p", run.pool.size(), stored).value();
  Ledger ledger{.size = run.pool.size(), .held = {}, .asked_back = {}, .line = stored};
  for (const PermitChange& change : restored.changes) ledger.book(change);
  RC_ASSERT(restored.pool.waiting() == ledger.line);
  RC_ASSERT(restored.pool.granted() == ledger.granted());
}

}  // namespace
