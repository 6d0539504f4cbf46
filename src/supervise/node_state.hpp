// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The state of a worker that decisions depend on: a value without threads and links.

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

namespace pawl::supervise {

/// A child that is being created, or that could not be created.
struct PendingChild {
  enum class State : std::uint8_t {
    idle,
    creating,
    failed,   ///< created again after `not_before`
    retired,  ///< it removed itself, and its spec has not changed since
  };
  State state = State::idle;
  std::uint32_t failures = 0;
  std::uint64_t children_version = 0;  ///< of the parent, when creating began
  Instant not_before{};
};

/// Whether a worker belongs to the tree.
enum class Membership : std::uint8_t {
  wanted,
  leaving,   ///< it removes itself, after its children
  unwanted,  ///< its parent does not name it
  replaced,  ///< its parent names a child of another type instead
};

/// Collecting, and the age of the last observation.
struct Freshness {
  enum class Collection : std::uint8_t {
    none,
    queued,  ///< not known to have left the queue
    running,
    late,  ///< running, and asked to stop
  };
  Collection collection = Collection::none;
  bool again = false;  ///< collect once more: an action ended after the collection was queued
  std::uint32_t restarts = 0;
  std::uint64_t ticket = 0;
  Instant asked{};                ///< when it was queued
  Instant began{};                ///< when it left the queue, or was last found in it
  Duration waited{};              ///< time in the queue since the last observation; not the worker's fault
  Instant next{};                 ///< when the next collection is due
  std::optional<Instant> seen{};  ///< when the last observation was complete
  std::uint64_t seen_ticket = 0;  ///< the collection it came from
  Instant since{};                ///< when this incarnation began
  Instant last_restart{};
  std::string error{};

  bool is_collecting() const { return collection != Collection::none; }
};

/// Exceptions of decisions: after too many, decisions pause, with a probe after each pause.
struct Breaker {
  std::vector<Instant> throws{};
  std::uint32_t opened = 0;
  std::optional<Instant> probe_at{};
  std::string error{};
};

struct NodeState {
  std::shared_ptr<WorkerShared> identity{};
  std::shared_ptr<const WorkerType> type{};

  // The durable data.
  std::shared_ptr<const WorkerData> data{};
  std::size_t state = 0;

  // The desired state, as the worker reads it.
  std::shared_ptr<const void> desired{};
  std::unique_ptr<Error> config_error{};  ///< null for most
  std::vector<ChildView> views{};         ///< of the children
  std::map<std::string, PendingChild, std::less<>> pending_children{};

  // The observed state.
  std::shared_ptr<const void> observed{};
  std::optional<std::string> unsaved{};  ///< the observation as JSON, if it is not stored yet
  Freshness freshness{};

  // Deciding.
  Instant entered{};  ///< when the present state was
  Reason reason{"it was just created"};
  std::optional<Instant> acted{};    ///< when the last action ended
  Instant barrier_at{};              ///< observations from before do not count: an action has ended since
  std::uint64_t barrier_ticket = 0;  ///< the newest collection at that time; it and older ones do not count
  std::optional<Instant> again{};    ///< when to decide again, if nothing changes before
  std::optional<Instant> restart_by{};  ///< then it is restarted without its stop path
  std::unique_ptr<Breaker> breaker{};   ///< null for most
  std::uint32_t moves = 0;              ///< since the last observation or the beginning of stopping
  Membership membership = Membership::wanted;
  bool stopping = false;  ///< it is being parked, removed or restarted
  Health health = Health::unobserved;

  Phase phase() const { return type->states[state].phase; }
  bool is_unwanted() const {
    return membership == Membership::unwanted || membership == Membership::replaced;
  }
  /// Existing children and those being created.
  std::size_t count_children() const {
    const auto creating = std::ranges::count_if(
        pending_children, [](const auto& one) { return one.second.state == PendingChild::State::creating; });
    return views.size() + static_cast<std::size_t>(creating);
  }
};

}  // namespace pawl::supervise
