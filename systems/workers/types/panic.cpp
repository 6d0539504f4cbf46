// SPDX-License-Identifier: Apache-2.0
#include "workers/types/panic.hpp"

#include <stdexcept>

namespace pawl::workers {

Result<void> Panic::Connect::run(PanicTools& tools, const PanicDesired& desired,
                                 const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it connected");
  if (desired.should_panic) throw std::runtime_error("it panics, as configured");
  tools.connected = true;
  return {};
}

Result<void> Panic::Disconnect::run(PanicTools& tools, const PanicDesired&, const ActionContext&) {
  tools.connected = false;
  return {};
}

Next<Go<Panic::TryingToConnect>> Panic::next(Stopped, const Snapshot&) {
  return Go<TryingToConnect>{"it should run"};
}

Next<Go<Panic::Connected>, Do<Panic::Connect>> Panic::next(TryingToConnect, const Snapshot& now) {
  if (now.observed.connected) return Go<Connected>{"it is connected"};
  return Do<Connect>{"it is not connected yet"};
}

Next<Go<Panic::TryingToConnect>, Stay> Panic::next(Connected, const Snapshot& now) {
  if (!now.observed.connected) return Go<TryingToConnect>{"the connection is lost"};
  return Stay{"it is connected"};
}

Next<Go<Panic::Stopped>, Do<Panic::Disconnect>> Panic::next(TryingToStop, const Snapshot& now) {
  if (!now.observed.connected) return Go<Stopped>{"it is disconnected"};
  return Do<Disconnect>{"it is still connected"};
}

Next<Go<Panic::TryingToStop>> Panic::stop(TryingToConnect, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it connects"};
}
Next<Go<Panic::TryingToStop>> Panic::stop(Connected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}

Result<PanicObserved> Panic::collect(PanicTools& tools, const PanicDesired&, const CollectContext&) {
  return PanicObserved{.connected = tools.connected};
}

void add_panic(WorkerTypes& types) { types.add<Panic>(); }

}  // namespace pawl::workers
