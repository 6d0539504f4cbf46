// SPDX-License-Identifier: Apache-2.0
#include "workers/types/failing.hpp"

#include <fmt/format.h>

#include <chrono>

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectedPerCycle = 5s;

bool has_failed_enough(const FailingTools& tools, const FailingDesired& desired) {
  return !desired.should_fail || tools.seen.failures >= desired.max_failures;
}

}  // namespace

Result<void> Failing::Connect::run(FailingTools& tools, const FailingDesired& desired,
                                   const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it connected");
  const std::lock_guard lock(tools.mutex);
  if (tools.seen.connected) return {};
  if (has_failed_enough(tools, desired)) {
    tools.seen.connected = true;
    return {};
  }
  ++tools.seen.failures;
  tools.observations = 0;
  const auto remaining = desired.max_failures - tools.seen.failures;
  return fail(Code::unreachable,
              fmt::format("failure {} of {}, as configured", tools.seen.failures, desired.max_failures),
              {{"attempt", std::to_string(tools.seen.failures)}, {"remaining", std::to_string(remaining)}});
}

Result<void> Failing::Lose::run(FailingTools& tools, const FailingDesired&, const ActionContext&) {
  const std::lock_guard lock(tools.mutex);
  if (!tools.seen.connected) return {};
  tools.seen = {.cycle = tools.seen.cycle + 1};
  tools.observations = 0;
  return {};
}

Result<void> Failing::Disconnect::run(FailingTools& tools, const FailingDesired&, const ActionContext&) {
  const std::lock_guard lock(tools.mutex);
  tools.seen.connected = false;
  return {};
}

Next<Go<Failing::TryingToConnect>> Failing::next(Stopped, const Snapshot&) {
  return Go<TryingToConnect>{"it should run"};
}

Next<Go<Failing::Connected>, Do<Failing::Connect>, Restart, Stay> Failing::next(TryingToConnect,
                                                                                const Snapshot& now) {
  if (now.observed.connected) return Go<Connected>{"it is connected"};
  if (now.desired.restart_after_failures > 0 && now.failures >= now.desired.restart_after_failures) {
    return Restart{fmt::format("{} failures in a row", now.failures)};
  }
  if (now.observed.recovering) {
    return Stay{fmt::format("it recovers for {} observations", now.desired.recovery_delay_observations)};
  }
  return Do<Connect>{fmt::format("it is not connected yet, after {} failures", now.observed.failures)};
}

Next<Go<Failing::Disconnected>, Do<Failing::Lose>, Stay> Failing::next(Connected, const Snapshot& now) {
  if (!now.observed.connected) return Go<Disconnected>{"the connection is lost"};
  if (!now.desired.should_fail || now.observed.cycle >= now.desired.failure_cycles)
    return Stay{"it is connected"};
  if (now.in_state < kConnectedPerCycle) {
    return Stay{.reason = "it is connected until the next cycle", .again = kConnectedPerCycle - now.in_state};
  }
  return Do<Lose>{fmt::format("cycle {} of {} is over", now.observed.cycle, now.desired.failure_cycles)};
}

Next<Go<Failing::TryingToConnect>> Failing::next(Disconnected, const Snapshot&) {
  return Go<TryingToConnect>{"it connects again"};
}

Next<Go<Failing::Stopped>, Do<Failing::Disconnect>> Failing::next(TryingToStop, const Snapshot& now) {
  if (!now.observed.connected) return Go<Stopped>{"it is disconnected"};
  return Do<Disconnect>{"it is still connected"};
}

Next<Go<Failing::TryingToStop>> Failing::stop(TryingToConnect, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it connects"};
}
Next<Go<Failing::TryingToStop>> Failing::stop(Connected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}
Next<Go<Failing::TryingToStop>> Failing::stop(Disconnected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it is disconnected"};
}

Result<FailingObserved> Failing::collect(FailingTools& tools, const FailingDesired& desired,
                                         const CollectContext&) {
  const std::lock_guard lock(tools.mutex);
  const bool waits = desired.should_fail && !tools.seen.connected && has_failed_enough(tools, desired) &&
                     tools.observations < desired.recovery_delay_observations;
  if (waits) ++tools.observations;
  tools.seen.recovering = waits;
  return tools.seen;
}

void add_failing(WorkerTypes& types) { types.add<Failing>(); }

}  // namespace pawl::workers
