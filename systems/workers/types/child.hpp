// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An example of a child: a connection that is made, lost and made again. There is no device; the link is a
/// flag that a test may cut.
///
///     {"address": "{{ .IP }}:{{ .PORT }}", "device": "{{ .DEVICE_ID }}"}

#include <memory>
#include <string>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/services.hpp"

namespace pawl::workers {

struct ChildObserved {
  bool connected = false;
};

struct ChildDesired {
  std::string address{};
  std::string device{};
};

struct ChildTools {
  std::shared_ptr<ExampleLink> link;
};

struct Child : Worker<ChildObserved, ChildDesired, ChildTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct Disconnected : phase::Starting {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, Disconnected, TryingToStop>;

  struct Connect {
    static Result<void> run(ChildTools& tools, const ChildDesired& desired, const ActionContext& context);
  };
  struct Disconnect {
    static Result<void> run(ChildTools& tools, const ChildDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot& now);
  static Next<Go<Connected>, Do<Connect>> next(TryingToConnect, const Snapshot& now);
  static Next<Go<Disconnected>, Stay> next(Connected, const Snapshot& now);
  static Next<Go<TryingToConnect>> next(Disconnected, const Snapshot& now);
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Connected, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Disconnected, const Snapshot& now);

  static Result<ChildObserved> collect(ChildTools& tools, const ChildDesired& desired,
                                       const CollectContext& context);
};

void add_child(WorkerTypes& types, const TypeServices& services);

}  // namespace pawl::workers
