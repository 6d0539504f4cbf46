// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The last events of a worker, and which of what is known of it is about its present configuration.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/supervisor.hpp"

namespace pawl::workers {

/// One thing that happened to a worker.
struct EventView {
  std::string at;
  std::string event;
  std::string state;
  std::string action;
  std::string reason;
  std::string error;
  /// Of the configuration that the reason and the error are about; 0 if that is not known.
  std::int64_t desired_version = 0;
};

struct RecentHistory {
  std::vector<EventView> events{};  ///< newest first
  bool is_reason_current = true;    ///< the reason that is stored last is about the present configuration
  bool is_problem_current = true;   ///< so is the error
  bool is_observed_current = true;  ///< so is the observation
  std::vector<UserSpec> earlier{};  ///< earlier configurations that these events mention
};

/// The last `limit` events. What cannot be told from them is not taken for current. `now` is on the clock of
/// the events. Errors: those of `Engine::history`.
Result<RecentHistory> read_recent_history(const Engine& engine, const std::string& machine,
                                          const WorkerView& worker, Time now, std::size_t limit);

}  // namespace pawl::workers
