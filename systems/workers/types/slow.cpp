// SPDX-License-Identifier: Apache-2.0
#include "workers/types/slow.hpp"

#include <fmt/format.h>

#include <memory>

namespace pawl::workers {
namespace {

constexpr std::uint32_t kLongestDelay = 240;  // below the timeout of the action

}  // namespace

Result<void> Slow::Connect::run(SlowTools& tools, const SlowDesired& desired, const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it connected");
  if (tools.connected) return {};
  if (!tools.wait(std::chrono::seconds(desired.delay_seconds), context.stop))
    return fail(Code::cancelled, fmt::format("stopped within its delay of {} s", desired.delay_seconds));
  tools.connected = true;
  return {};
}

Result<void> Slow::Disconnect::run(SlowTools& tools, const SlowDesired&, const ActionContext&) {
  tools.connected = false;
  return {};
}

Next<Go<Slow::TryingToConnect>> Slow::next(Stopped, const Snapshot&) {
  return Go<TryingToConnect>{"it should run"};
}

Next<Go<Slow::Connected>, Do<Slow::Connect>> Slow::next(TryingToConnect, const Snapshot& now) {
  if (now.observed.connected) return Go<Connected>{"it is connected"};
  return Do<Connect>{fmt::format("it is not connected yet, which takes {} s", now.desired.delay_seconds)};
}

Next<Go<Slow::TryingToConnect>, Stay> Slow::next(Connected, const Snapshot& now) {
  if (!now.observed.connected) return Go<TryingToConnect>{"the connection is lost"};
  return Stay{"it is connected"};
}

Next<Go<Slow::Stopped>, Do<Slow::Disconnect>> Slow::next(TryingToStop, const Snapshot& now) {
  if (!now.observed.connected) return Go<Stopped>{"it is disconnected"};
  return Do<Disconnect>{"it is still connected"};
}

Next<Go<Slow::TryingToStop>> Slow::stop(TryingToConnect, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it connects"};
}
Next<Go<Slow::TryingToStop>> Slow::stop(Connected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}

Result<SlowDesired> Slow::derive(SlowDesired read) {
  if (read.delay_seconds > kLongestDelay) {
    return fail(Code::spec_invalid,
                fmt::format("delay_seconds is {}; at most {}", read.delay_seconds, kLongestDelay),
                {{"field", "delay_seconds"}});
  }
  return read;
}

Result<SlowObserved> Slow::collect(SlowTools& tools, const SlowDesired&, const CollectContext&) {
  return SlowObserved{.connected = tools.connected};
}

void add_slow(WorkerTypes& types, const TypeServices& services) {
  types.add<Slow>([wait = services.wait](const WorkerIdentity&) {
    auto tools = std::make_shared<SlowTools>();
    tools->wait = wait;
    return tools;
  });
}

}  // namespace pawl::workers
