// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The example of a worker that breaks the rules: its action throws if it is told to. Everything else goes
/// on.
///
///     {"should_panic": true}

#include <atomic>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

struct PanicObserved {
  bool connected = false;
};

struct PanicDesired {
  bool should_panic = false;
};

struct PanicTools {
  std::atomic<bool> connected = false;
};

struct Panic : Worker<PanicObserved, PanicDesired, PanicTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, TryingToStop>;

  /// Throws std::runtime_error.
  struct Connect {
    static Result<void> run(PanicTools& tools, const PanicDesired& desired, const ActionContext& context);
  };
  struct Disconnect {
    static Result<void> run(PanicTools& tools, const PanicDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot& now);
  static Next<Go<Connected>, Do<Connect>> next(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToConnect>, Stay> next(Connected, const Snapshot& now);
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Connected, const Snapshot& now);

  static Result<PanicObserved> collect(PanicTools& tools, const PanicDesired& desired,
                                       const CollectContext& context);
};

void add_panic(WorkerTypes& types);

}  // namespace pawl::workers
