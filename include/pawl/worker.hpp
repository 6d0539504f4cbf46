// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker: something with a desired state, which is observed and acted on until it is in that state.
///
///     struct PumpObserved { bool turning = false; };
///     struct PumpDesired { int rpm = 100; };
///     struct PumpTools { Motor& motor; };
///
///     struct Pump : pawl::Worker<PumpObserved, PumpDesired, PumpTools> {
///       struct Stopped : pawl::phase::Stopped {};
///       struct TryingToStart : pawl::phase::Starting {};
///       struct Running : pawl::phase::Running {};
///       struct TryingToStop : pawl::phase::Stopping {};
///       using States = pawl::States<Stopped, TryingToStart, Running, TryingToStop>;  // the first is initial
///
///       struct Start {
///         static pawl::Result<void> run(Tools& tools, const Desired& desired, const pawl::ActionContext&) {
///           return tools.motor.turn(desired.rpm);      // idempotent: it may run again
///         }
///       };
///       struct Stop { … };
///
///       static pawl::Next<pawl::Go<TryingToStart>> next(Stopped, const Snapshot&) {
///         return pawl::Go<TryingToStart>{"it should run"};
///       }
///       static pawl::Next<pawl::Go<Running>, pawl::Do<Start>> next(TryingToStart, const Snapshot& now) {
///         if (now.observed.turning) return pawl::Go<Running>{"it turns"};
///         return pawl::Do<Start>{"it does not turn yet"};
///       }
///       …
///       static pawl::Next<pawl::Go<TryingToStop>> stop(Running, const Snapshot&) { … }
///
///       static pawl::Result<Observed> collect(Tools& tools, const Desired&, const pawl::CollectContext&);
///     };
///     static_assert(pawl::verified_worker<Pump>);
///
/// States are empty types. The return type of `next` lists what a state may answer; from these lists the
/// compiler builds the worker's machine and verifies it. `next` and `stop` are pure: they get a snapshot and
/// return what to do, with a reason. `stop` is called instead of `next` while the worker is being parked,
/// removed or restarted. States of `phase::Stopped` need no `stop`; states of `phase::Stopping` have `next`
/// only, must not stay and lead to a stopped state. Actions are empty types, too. They run on other threads,
/// may block, must be idempotent and honour `context.stop`. An exception becomes the error `worker_threw` and
/// concerns this worker alone.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/names.hpp"
#include "pawl/retry.hpp"
#include "pawl/time.hpp"
#include "pawl/worker_spec.hpp"

namespace pawl {

/// The phase of a state. `running` is healthy; `running` and `degraded` are operational.
enum class Phase : std::uint8_t { stopped, starting, running, degraded, stopping };

/// The base of a state says its phase.
namespace phase {
struct Stopped {
  static constexpr Phase kPhase = Phase::stopped;
};
struct Starting {
  static constexpr Phase kPhase = Phase::starting;
};
struct Running {
  static constexpr Phase kPhase = Phase::running;
};
struct Degraded {
  static constexpr Phase kPhase = Phase::degraded;
};
struct Stopping {
  static constexpr Phase kPhase = Phase::stopping;
};
}  // namespace phase

/// All states of a worker; the first is initial.
template <class... S>
struct States {};

/// Why a state answers as it does. A literal is not copied; for a text with values, use fmt.
class Reason {
 public:
  template <std::size_t N>
  explicit(false) Reason(const char (&literal)[N]) : literal_(literal, N - 1) {}
  explicit(false) Reason(std::string made) : made_(std::move(made)) {}

  std::string_view text() const { return literal_.data() != nullptr ? literal_ : std::string_view(made_); }

 private:
  std::string_view literal_{};
  std::string made_{};
};

// What a state may answer.

/// Do nothing. With `again`, ask again after that time even if nothing has changed.
struct Stay {
  Reason reason;
  std::optional<Duration> again{};
};
/// Change to another state.
template <class State>
struct Go {
  Reason reason;
};
/// Run an action. The next decision has an observation whose collection began after the end of the action.
template <class Action>
struct Do {
  Reason reason;
};
/// Remove the worker, after its children: it has done its work.
struct Remove {
  Reason reason;
};
/// Stop the worker and begin a new incarnation.
struct Restart {
  Reason reason;
};

/// The answer of a state: one of those listed.
template <class... Results>
class Next {
 public:
  template <class R>
    requires(std::same_as<R, Results> || ...)
  explicit(false) Next(R result) : result_(std::move(result)) {}

  const std::variant<Results...>& result() const { return result_; }

 private:
  std::variant<Results...> result_;
};

/// The identity of a worker; never changes.
struct WorkerIdentity {
  std::string path;  ///< unique: the names from the top down, joined with '/'
  std::string name;
  std::string type;
  std::string parent;  ///< path of the parent; empty at the top
  Time created_at{};
};

/// What a parent sees of a child.
struct ChildView {
  std::string_view name;
  std::string_view type;
  std::string_view state;
  std::string_view reason;
  Phase phase = Phase::stopped;
  bool fresh = true;     ///< its observation is not stale and its configuration is valid
  bool failing = false;  ///< its last action failed

  bool is_operational() const { return phase == Phase::running || phase == Phase::degraded; }
  bool is_healthy() const { return phase == Phase::running && fresh; }
};

/// The children of a worker. The `all_…` functions return true if there are none.
struct Children {
  std::span<const ChildView> all{};

  std::size_t count(Phase phase) const {
    std::size_t found = 0;
    for (const auto& child : all) found += child.phase == phase ? 1U : 0U;
    return found;
  }
  bool all_stopped() const { return count(Phase::stopped) == all.size(); }
  std::size_t healthy() const {
    std::size_t found = 0;
    for (const auto& child : all) found += child.is_healthy() ? 1U : 0U;
    return found;
  }
  std::size_t operational() const { return count(Phase::running) + count(Phase::degraded); }
  bool all_healthy() const { return healthy() == all.size(); }
  bool all_operational() const { return operational() == all.size(); }
};

/// What a state decides on, taken at one moment.
template <class Observed, class Desired>
struct WorkerSnapshot {
  const WorkerIdentity& identity;
  const Observed& observed;
  const Desired& desired;
  Children children{};
  Duration in_state{};            ///< since the state was entered, or the program started
  std::uint32_t failures = 0;     ///< of actions in a row in this state
  std::string_view last_error{};  ///< of the last of them
  std::uint32_t incarnation = 1;  ///< grows with each restart
};

/// The context of an action.
struct ActionContext {
  const WorkerIdentity& identity;
  std::int64_t number = 0;    ///< of this run of the action; the same if a crash repeats it
  std::uint32_t attempt = 1;  ///< from 1; grows if a crash repeats it
  std::stop_token stop{};     ///< set after the timeout, when the worker stops, and when the program ends
};

/// The context of a collection.
struct CollectContext {
  const WorkerIdentity& identity;
  Time now{};
  std::stop_token stop{};  ///< set after the timeout and when the program ends
};

struct NoTools {};

/// The base of every worker: the observed state, the desired state (both plain structs that `pawl/codec.hpp`
/// can encode) and the tools of `collect` and the actions. Several threads use the tools at once.
///
/// Optional members of a worker:
///     static constexpr std::string_view kType = "mqtt_client";  // by default from the type's name
///     static Result<Desired> derive(Desired read);   // validates and completes the configuration; pure
///     static std::vector<ChildSpec> children(const Desired&, const UserSpec&);  // pure
///     // Fields that are templates for the children: their expressions are kept as they are.
///     static constexpr std::array<std::string_view, 1> kTemplates = {"child_config"};
///     // Fields whose values need the role operator; "command[1:]" is all elements but the first.
///     static constexpr std::array<std::string_view, 1> kConfidential = {"headers"};
///     static constexpr Duration kObserveEvery = 5s;  // by default the supervisor's
/// and of an action:
///     static constexpr Duration kTimeout = 5min;     // by default 30 s
///     static constexpr RetryPolicy kBackoff{…};      // between failures; by default the supervisor's
template <class O, class D, class T = NoTools>
struct Worker {
  using Observed = O;
  using Desired = D;
  using Tools = T;
  using Snapshot = WorkerSnapshot<O, D>;
};

namespace detail {

/// The stored name: "PumpWorker" and "PumpObservedState" become "pump".
template <class W>
constexpr auto make_worker_type_name() {
  constexpr auto full = [] {
    auto name = type_name<W>();
    for (const std::string_view suffix : {"Worker", "ObservedState"}) {
      if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size());
    }
    return name;
  }();
  std::array<char, full.size()> lower{};
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char letter = full[i];
    lower[i] = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return lower;
}
template <class W>
inline constexpr auto derived_worker_type = make_worker_type_name<W>();

}  // namespace detail

/// The stored name of a worker's type.
template <class W>
constexpr std::string_view worker_type_name() {
  if constexpr (requires { W::kType; }) {
    return W::kType;
  } else {
    return {detail::derived_worker_type<W>.data(), detail::derived_worker_type<W>.size()};
  }
}

}  // namespace pawl

#include "pawl/detail/worker_verify.hpp"
