// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The states of a worker that only observes: it has no actions and stops at once.
///
///     struct TcpCheck : CheckWorker<TcpObserved, TcpDesired, CheckRun> { … };

#include <fmt/format.h>

#include "pawl/worker.hpp"
#include "workers/types/check_run.hpp"

namespace pawl::workers {

namespace check {
struct Stopped : phase::Stopped {};
struct Checking : phase::Starting {};
struct Healthy : phase::Running {};
struct Unhealthy : phase::Degraded {};
}  // namespace check

/// The verdict as a text.
inline std::string why_healthy(const CheckState& seen) {
  return fmt::format("up, {} in a row", seen.successes);
}
inline std::string why_unhealthy(const CheckState& seen) {
  return fmt::format("down, {} in a row: {}", seen.failures, seen.error);
}

/// Observed has a CheckState called `check`, Desired has the fields of CheckLimits.
template <class O, class D, class T>
struct CheckWorker : Worker<O, D, T> {
  using Snapshot = typename Worker<O, D, T>::Snapshot;
  using States = pawl::States<check::Stopped, check::Checking, check::Healthy, check::Unhealthy>;

  static CheckLimits limits(const D& desired) {
    return {.unhealthy_after = desired.unhealthy_after, .healthy_after = desired.healthy_after};
  }

  static Next<Go<check::Checking>> next(check::Stopped, const Snapshot&) {
    return Go<check::Checking>{"it should run"};
  }
  static Next<Go<check::Healthy>, Go<check::Unhealthy>, Stay> next(check::Checking, const Snapshot& now) {
    const auto& seen = now.observed.check;
    if (seen.is_healthy(limits(now.desired))) return Go<check::Healthy>{why_healthy(seen)};
    if (seen.is_unhealthy(limits(now.desired))) return Go<check::Unhealthy>{why_unhealthy(seen)};
    return Stay{"too few checks so far"};
  }
  static Next<Go<check::Unhealthy>, Stay> next(check::Healthy, const Snapshot& now) {
    const auto& seen = now.observed.check;
    if (seen.is_unhealthy(limits(now.desired))) return Go<check::Unhealthy>{why_unhealthy(seen)};
    if (!seen.up) return Stay{why_unhealthy(seen)};
    return Stay{why_healthy(seen)};
  }
  static Next<Go<check::Healthy>, Stay> next(check::Unhealthy, const Snapshot& now) {
    const auto& seen = now.observed.check;
    if (seen.is_healthy(limits(now.desired))) return Go<check::Healthy>{why_healthy(seen)};
    if (seen.up) return Stay{why_healthy(seen)};
    return Stay{why_unhealthy(seen)};
  }

  static Next<Go<check::Stopped>> stop(check::Checking, const Snapshot&) { return stopped(); }
  static Next<Go<check::Stopped>> stop(check::Healthy, const Snapshot&) { return stopped(); }
  static Next<Go<check::Stopped>> stop(check::Unhealthy, const Snapshot&) { return stopped(); }

 private:
  static Go<check::Stopped> stopped() { return {"nothing is held open"}; }
};

}  // namespace pawl::workers
