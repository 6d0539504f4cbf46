// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An example of a worker that fails to connect `max_failures` times, then succeeds. After five seconds it
/// loses the connection and fails again, in `failure_cycles` cycles.
///
///     {"should_fail": true, "max_failures": 3, "failure_cycles": 2, "restart_after_failures": 0,
///      "recovery_delay_observations": 3}

#include <cstdint>
#include <mutex>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

struct FailingObserved {
  bool connected = false;
  bool recovering = false;     ///< it has failed often enough, but not been observed often enough since
  std::uint32_t failures = 0;  ///< in this cycle
  std::uint32_t cycle = 1;
};

struct FailingDesired {
  bool should_fail = false;
  std::uint32_t max_failures = 3;  ///< per cycle
  std::uint32_t failure_cycles = 1;
  std::uint32_t restart_after_failures = 0;       ///< consecutive failures after which it restarts; 0: never
  std::uint32_t recovery_delay_observations = 0;  ///< after the last failure of a cycle, before it succeeds
};

/// A new instance starts from the beginning. Thread-safe.
struct FailingTools {
  std::mutex mutex;
  FailingObserved seen{};
  std::uint32_t observations = 0;  ///< since the last failure of the cycle
};

struct Failing : Worker<FailingObserved, FailingDesired, FailingTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct Disconnected : phase::Starting {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, Disconnected, TryingToStop>;

  /// Error: `unreachable` with the fields `attempt` and `remaining`.
  struct Connect {
    static Result<void> run(FailingTools& tools, const FailingDesired& desired, const ActionContext& context);
  };
  /// Loses the connection: the next cycle begins.
  struct Lose {
    static Result<void> run(FailingTools& tools, const FailingDesired& desired, const ActionContext& context);
  };
  struct Disconnect {
    static Result<void> run(FailingTools& tools, const FailingDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot& now);
  static Next<Go<Connected>, Do<Connect>, Restart, Stay> next(TryingToConnect, const Snapshot& now);
  static Next<Go<Disconnected>, Do<Lose>, Stay> next(Connected, const Snapshot& now);
  static Next<Go<TryingToConnect>> next(Disconnected, const Snapshot& now);
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Connected, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Disconnected, const Snapshot& now);

  static Result<FailingObserved> collect(FailingTools& tools, const FailingDesired& desired,
                                         const CollectContext& context);
};

void add_failing(WorkerTypes& types);

}  // namespace pawl::workers
