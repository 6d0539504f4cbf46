// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An example of a parent: its children run while it runs, and it is degraded while one of them is not
/// healthy.
///
///     {"children_count": 2, "child_worker_type": "child",
///      "child_config": "{\"address\": \"{{ .IP }}:{{ .PORT }}\", \"device\": \"{{ .DEVICE_ID }}\"}"}
///
/// With `wait_time` and `run_time` it cycles between stopped and running.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

struct ParentObserved {
  bool started = false;
};

struct ParentDesired {
  std::uint32_t children_count = 0;
  std::string child_worker_type = "child";
  std::string child_config{};  ///< a template; children have the additional variable DEVICE_ID
  Duration wait_time{};        ///< stopped before it starts
  Duration run_time{};         ///< until it stops by itself; zero: forever
};

struct ParentTools {
  std::atomic<bool> started = false;
};

struct Parent : Worker<ParentObserved, ParentDesired, ParentTools> {
  static constexpr std::array<std::string_view, 1> kTemplates = {"child_config"};
  static constexpr std::array<std::string_view, 1> kConfidential = {"child_config"};

  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct Degraded : phase::Degraded {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, Degraded, TryingToStop>;

  struct Start {
    static Result<void> run(ParentTools& tools, const ParentDesired& desired, const ActionContext& context);
  };
  /// Repeated until the children are stopped: a stopping state must not stay.
  struct Stop {
    static constexpr RetryPolicy kBackoff{.retries = RetryPolicy::kUnlimited,
                                          .first = std::chrono::milliseconds(200),
                                          .factor = 1.0,
                                          .cap = std::chrono::milliseconds(200),
                                          .jitter = Jitter::none};
    static Result<void> run(ParentTools& tools, const ParentDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToStart>, Stay> next(Stopped, const Snapshot& now);
  static Next<Go<Running>, Do<Start>, Stay> next(TryingToStart, const Snapshot& now);
  static Next<Go<Degraded>, Go<TryingToStop>, Stay> next(Running, const Snapshot& now);
  static Next<Go<Running>, Go<TryingToStop>, Stay> next(Degraded, const Snapshot& now);
  static Next<Go<Stopped>, Do<Stop>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToStart, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Running, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Degraded, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<ParentDesired> derive(ParentDesired read);
  static std::vector<ChildSpec> children(const ParentDesired& desired, const UserSpec& spec);
  static Result<ParentObserved> collect(ParentTools& tools, const ParentDesired& desired,
                                        const CollectContext& context);
};

void add_parent(WorkerTypes& types);

}  // namespace pawl::workers
