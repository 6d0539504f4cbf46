// SPDX-License-Identifier: Apache-2.0
#include "workers/types/child.hpp"

namespace pawl::workers {

Result<void> Child::Connect::run(ChildTools& tools, const ChildDesired&, const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it connected");
  tools.link->connected = true;
  return {};
}

Result<void> Child::Disconnect::run(ChildTools& tools, const ChildDesired&, const ActionContext&) {
  tools.link->connected = false;
  return {};
}

Next<Go<Child::TryingToConnect>> Child::next(Stopped, const Snapshot&) {
  return Go<TryingToConnect>{"it should run"};
}

Next<Go<Child::Connected>, Do<Child::Connect>> Child::next(TryingToConnect, const Snapshot& now) {
  if (now.observed.connected) return Go<Connected>{"it is connected"};
  return Do<Connect>{"it is not connected yet"};
}

Next<Go<Child::Disconnected>, Stay> Child::next(Connected, const Snapshot& now) {
  if (!now.observed.connected) return Go<Disconnected>{"the connection is lost"};
  return Stay{"it is connected"};
}

Next<Go<Child::TryingToConnect>> Child::next(Disconnected, const Snapshot&) {
  return Go<TryingToConnect>{"it connects again"};
}

Next<Go<Child::Stopped>, Do<Child::Disconnect>> Child::next(TryingToStop, const Snapshot& now) {
  if (!now.observed.connected) return Go<Stopped>{"it is disconnected"};
  return Do<Disconnect>{"it is still connected"};
}

Next<Go<Child::TryingToStop>> Child::stop(TryingToConnect, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it connects"};
}
Next<Go<Child::TryingToStop>> Child::stop(Connected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}
Next<Go<Child::TryingToStop>> Child::stop(Disconnected, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it is disconnected"};
}

Result<ChildObserved> Child::collect(ChildTools& tools, const ChildDesired&, const CollectContext&) {
  return ChildObserved{.connected = tools.link->connected};
}

void add_child(WorkerTypes& types, const TypeServices& services) {
  types.add<Child>(
      [make = services.make_link](const WorkerIdentity& who) { return ChildTools{.link = make(who)}; });
}

}  // namespace pawl::workers
