// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker in memory: the copy of what is durable, and what only this run of the program knows.

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
#include "supervise/hands.hpp"
#include "supervise/wheel.hpp"

namespace pawl::supervise {

/// When a child that could not be made is tried again.
struct Birth {
  std::uint64_t wish = 0;  ///< the parent's, when it began
  bool under_way = false;
  bool retired = false;  ///< it removed itself, and its spec has not changed since
  std::uint32_t failures = 0;
  Instant not_before{};
};

/// Collecting: the freshness of what is known.
struct Sight {
  bool collecting = false;
  bool begun = false;  ///< it is known not to stand in line any more
  bool again = false;  ///< something has happened since it was asked for
  bool late = false;   ///< it was asked to stop
  std::uint64_t ticket = 0;
  Instant asked{};    ///< from when on it stands in line
  Instant began{};    ///< or when it was last looked whether it has
  Duration waited{};  ///< in line, since the newest observation: that is not the worker's fault
  Instant next{};
  std::optional<Instant> seen{};  ///< when the newest observation was complete
  std::uint64_t seen_ticket = 0;  ///< and which collection it was
  Instant since{};                ///< from when on nothing was seen, where nothing was
  std::uint32_t restarts = 0;
  Instant last_restart{};
  std::string error{};
};

/// Exceptions: after too many the worker is left alone, and tried again now and then.
struct Breaker {
  std::vector<Instant> throws{};
  std::uint32_t opened = 0;
  std::optional<Instant> probe_at{};
  std::string error{};
};

struct Node : WheelLink, std::enable_shared_from_this<Node> {
  std::shared_ptr<Person> identity;
  std::shared_ptr<const WorkerType> type;
  Node* parent = nullptr;
  std::vector<std::shared_ptr<Node>> children;
  std::vector<ChildView> views;  ///< of the children, in the same order
  std::size_t place = 0;         ///< among the parent's children
  std::size_t index = 0;         ///< among all
  std::size_t depth = 0;

  // What is durable.
  std::shared_ptr<const WorkerData> data;
  std::size_t state = 0;
  std::int64_t version = 0;
  bool committing = false;
  bool revisit = false;  ///< look at it again when the commit is durable
  bool gone = false;

  // What is desired, as the worker reads it.
  std::shared_ptr<const void> desired;
  std::unique_ptr<Error> config_error;  ///< most have none
  std::uint64_t wishes = 0;             ///< grows when other children may be desired
  bool names_children = false;          ///< there should be some
  bool leaving = false;                 ///< it removes itself, its children before it
  std::map<std::string, Birth, std::less<>> births;
  bool reconciled = false;  ///< the children are as wanted, or on their way
  bool unwanted = false;    ///< its parent does not name it any more
  bool replaced = false;    ///< its parent names one of another type instead

  // What is observed.
  std::shared_ptr<Hands> hands;
  std::shared_ptr<const void> observed;
  std::optional<std::string> unsaved;  ///< the observation's text, where it is not stored yet
  Sight sight;
  bool gave_up = false;  ///< a collection hung once; others of it may still
  bool slow = false;     ///< so was the last collection

  // Deciding.
  Instant entered{};
  Reason reason{"it was just made"};
  std::optional<Instant> acted;    ///< when the last action ended
  Instant blind_since{};           ///< nothing that was seen before counts: an action has ended since
  std::uint64_t blind_ticket = 0;  ///< the newest collection then: neither it nor an older one counts
  std::optional<Instant> again;    ///< as the state asked
  std::uint32_t moves = 0;         ///< since the last observation, or since it is to stop
  bool stopping = false;           ///< it is to stop
  std::int64_t transitions = 0;
  Health health = Health::unobserved;
  std::unique_ptr<Breaker> breaker;   ///< most have thrown nothing
  std::optional<Instant> restart_by;  ///< then without its stop path

  Phase phase() const { return type->states[state].phase; }
  bool is_top() const { return parent == nullptr; }
  /// Those that are there, and those that are about to be.
  std::size_t count_children() const {
    const auto under_way =
        std::ranges::count_if(births, [](const auto& one) { return one.second.under_way; });
    return children.size() + static_cast<std::size_t>(under_way);
  }
};

}  // namespace pawl::supervise
