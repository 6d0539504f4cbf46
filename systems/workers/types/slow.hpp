// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An example of a worker that connects slowly and stops at once.
///
///     {"delay_seconds": 2}

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/services.hpp"

namespace pawl::workers {

struct SlowObserved {
  bool connected = false;
};

struct SlowDesired {
  std::uint32_t delay_seconds = 0;
};

struct SlowTools {
  std::function<bool(Duration, std::stop_token)> wait;
  std::atomic<bool> connected = false;
};

struct Slow : Worker<SlowObserved, SlowDesired, SlowTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, TryingToStop>;

  /// Error: `cancelled`.
  struct Connect {
    static constexpr Duration kTimeout = std::chrono::minutes(5);
    static Result<void> run(SlowTools& tools, const SlowDesired& desired, const ActionContext& context);
  };
  struct Disconnect {
    static Result<void> run(SlowTools& tools, const SlowDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot& now);
  static Next<Go<Connected>, Do<Connect>> next(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToConnect>, Stay> next(Connected, const Snapshot& now);
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Connected, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<SlowDesired> derive(SlowDesired read);
  static Result<SlowObserved> collect(SlowTools& tools, const SlowDesired& desired,
                                      const CollectContext& context);
};

void add_slow(WorkerTypes& types, const TypeServices& services);

}  // namespace pawl::workers
