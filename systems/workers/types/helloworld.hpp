// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The smallest example: it says hello once, and is degraded while a file contains "sad".
///
///     {"mood_file": "/run/mood"}

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/services.hpp"

namespace pawl::workers {

struct HelloworldObserved {
  bool greeted = false;
  std::string mood{};  ///< the first word of the file; empty if there is none
};

struct HelloworldDesired {
  std::string mood_file{};  ///< empty: never degraded
};

struct HelloworldTools {
  std::function<Result<std::optional<std::string>>(const std::string& path)> read_file;
  std::atomic<bool> greeted = false;
};

struct Helloworld : Worker<HelloworldObserved, HelloworldDesired, HelloworldTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct Degraded : phase::Degraded {};
  using States = pawl::States<Stopped, TryingToStart, Running, Degraded>;

  struct SayHello {
    static Result<void> run(HelloworldTools& tools, const HelloworldDesired& desired,
                            const ActionContext& context);
  };

  static Next<Go<TryingToStart>> next(Stopped, const Snapshot& now);
  static Next<Go<Running>, Do<SayHello>> next(TryingToStart, const Snapshot& now);
  static Next<Go<Degraded>, Stay> next(Running, const Snapshot& now);
  static Next<Go<Running>, Stay> next(Degraded, const Snapshot& now);
  static Next<Go<Stopped>> stop(TryingToStart, const Snapshot& now);
  static Next<Go<Stopped>> stop(Running, const Snapshot& now);
  static Next<Go<Stopped>> stop(Degraded, const Snapshot& now);

  static Result<HelloworldObserved> collect(HelloworldTools& tools, const HelloworldDesired& desired,
                                            const CollectContext& context);
};

void add_helloworld(WorkerTypes& types, const TypeServices& services);

}  // namespace pawl::workers
