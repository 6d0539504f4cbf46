// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A parent whose children are in the file, below its key `children`. It is Active while no child fails; its
/// states control the children through their `stateMapping`.
///
///     {"children": [{"name": "line", "worker_type": "mqtt_client", "config": "url: mqtt://{{ .IP }}",
///                    "state_mapping": {"Active": "Connected", "Closing": "Stopped"}}]}

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "pawl/worker_types.hpp"
#include "workers/config/nested.hpp"

namespace pawl::workers {

struct GroupObserved {};

struct GroupDesired {
  std::vector<NestedChild> children{};
};

struct Group : Worker<GroupObserved, GroupDesired> {
  static constexpr std::array<std::string_view, 1> kTemplates = {"children"};
  static constexpr std::array<std::string_view, 1> kConfidential = {"children"};

  struct Stopped : phase::Stopped {};
  struct Active : phase::Running {};
  struct Impaired : phase::Degraded {};  ///< a child that should run fails, or stopped running
  struct Closing : phase::Stopping {};
  using States = pawl::States<Stopped, Active, Impaired, Closing>;

  /// Repeated until the children are stopped: a stopping state must not stay.
  struct Wait {
    static constexpr RetryPolicy kBackoff{.retries = RetryPolicy::kUnlimited,
                                          .first = std::chrono::milliseconds(200),
                                          .factor = 1.0,
                                          .cap = std::chrono::milliseconds(200),
                                          .jitter = Jitter::none};
    static Result<void> run(NoTools& tools, const GroupDesired& desired, const ActionContext& context);
  };

  static Next<Go<Active>> next(Stopped, const Snapshot& now);
  static Next<Go<Impaired>, Stay> next(Active, const Snapshot& now);
  static Next<Go<Active>, Stay> next(Impaired, const Snapshot& now);
  static Next<Go<Stopped>, Do<Wait>> next(Closing, const Snapshot& now);
  static Next<Go<Closing>> stop(Active, const Snapshot& now);
  static Next<Go<Closing>> stop(Impaired, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<GroupDesired> derive(GroupDesired read);
  static std::vector<ChildSpec> children(const GroupDesired& desired, const UserSpec& spec);
  static Result<GroupObserved> collect(NoTools& tools, const GroupDesired& desired,
                                       const CollectContext& context);
};

void add_group(WorkerTypes& types);

}  // namespace pawl::workers
