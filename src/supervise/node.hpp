// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker in memory: a copy of the durable data, and the state of this run of the program.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/time.hpp"
#include "pawl/worker_types.hpp"
#include "supervise/tool_holder.hpp"
#include "supervise/wheel.hpp"

namespace pawl::supervise {

/// A child that is being created, or that could not be created.
struct PendingChild {
  std::uint64_t children_version = 0;  ///< of the parent, when creating began
  bool in_progress = false;
  bool retired = false;  ///< it removed itself, and its spec has not changed since
  std::uint32_t failures = 0;
  Instant not_before{};
};

/// Collecting, and the age of the last observation.
struct Freshness {
  bool collecting = false;
  bool started = false;  ///< it is known to have left the queue
  bool again = false;    ///< collect once more: an action ended after it was queued
  bool late = false;     ///< it was asked to stop
  std::uint64_t ticket = 0;
  Instant asked{};                ///< when it was queued
  Instant began{};                ///< when it left the queue, or was last found in it
  Duration waited{};              ///< time in the queue since the last observation; not the worker's fault
  Instant next{};                 ///< when the next collection is due
  std::optional<Instant> seen{};  ///< when the last observation was complete
  std::uint64_t seen_ticket = 0;  ///< the collection it came from
  Instant since{};                ///< when this incarnation began
  std::uint32_t restarts = 0;
  Instant last_restart{};
  std::string error{};
};

/// Exceptions of decisions: after too many, decisions pause, with a probe after each pause.
struct Breaker {
  std::vector<Instant> throws{};
  std::uint32_t opened = 0;
  std::optional<Instant> probe_at{};
  std::string error{};
};

struct Node : WheelLink, std::enable_shared_from_this<Node> {
  std::shared_ptr<WorkerShared> identity;
  std::shared_ptr<const WorkerType> type;
  Node* parent = nullptr;
  std::vector<std::shared_ptr<Node>> children;
  std::vector<ChildView> views;  ///< of the children, in the same order
  std::size_t place = 0;         ///< its index among the parent's children
  std::size_t index = 0;         ///< its index among all workers
  std::size_t depth = 0;

  // The durable data.
  std::shared_ptr<const WorkerData> data;
  std::size_t state = 0;
  std::int64_t version = 0;
  bool committing = false;
  bool revisit = false;  ///< evaluate it again when the commit is durable
  bool gone = false;     ///< removed; posted tasks may still hold it

  // The desired state, as the worker reads it.
  std::shared_ptr<const void> desired;
  std::unique_ptr<Error> config_error;  ///< null for most
  std::uint64_t children_version = 0;   ///< grows when the desired children may have changed
  bool wants_children = false;          ///< the desired state has some
  bool leaving = false;                 ///< it removes itself, after its children
  std::map<std::string, PendingChild, std::less<>> pending_children;
  bool reconciled = false;  ///< the children are as desired, or commits to make them so are in progress
  bool unwanted = false;    ///< its parent does not name it
  bool replaced = false;    ///< its parent names a child of another type instead

  // The observed state.
  std::shared_ptr<ToolHolder> tools;
  std::shared_ptr<const void> observed;
  std::optional<std::string> unsaved;  ///< the observation as JSON, if it is not stored yet
  Freshness freshness;
  bool gave_up_collecting = false;  ///< a collection of it was abandoned once
  bool slow = false;                ///< the last collection was slow

  // Deciding.
  Instant entered{};  ///< when the present state was
  Reason reason{"it was just created"};
  std::optional<Instant> acted;      ///< when the last action ended
  Instant barrier_at{};              ///< observations from before do not count: an action has ended since
  std::uint64_t barrier_ticket = 0;  ///< the newest collection at that time; it and older ones do not count
  std::optional<Instant> again;      ///< when to decide again, if nothing changes before
  std::uint32_t moves = 0;           ///< since the last observation or the beginning of stopping
  bool stopping = false;             ///< it is being parked, removed or restarted
  std::int64_t transitions = 0;
  Health health = Health::unobserved;
  std::unique_ptr<Breaker> breaker;   ///< null for most
  std::optional<Instant> restart_by;  ///< then it is restarted without its stop path

  Phase phase() const { return type->states[state].phase; }
  bool is_top() const { return parent == nullptr; }
  /// Existing children and those being created.
  std::size_t count_children() const {
    const auto in_progress =
        std::ranges::count_if(pending_children, [](const auto& one) { return one.second.in_progress; });
    return children.size() + static_cast<std::size_t>(in_progress);
  }
};

}  // namespace pawl::supervise
