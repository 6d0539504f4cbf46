// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker: something that should be in a certain state, is observed, and is acted on until it is.
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
///           return tools.motor.turn(desired.rpm);      // idempotent: it may be called again
///         }
///       };
///       struct Stop { … };
///
///       static pawl::Next<pawl::Go<TryingToStart>> next(Stopped, const Snapshot&) {
///         return pawl::Go<TryingToStart>{"it is wanted"};
///       }
///       static pawl::Next<pawl::Go<Running>, pawl::Do<Start>> next(TryingToStart, const Snapshot& now) {
///         if (now.observed.turning) return pawl::Go<Running>{"it turns"};
///         return pawl::Do<Start>{"it does not turn yet"};
///       }
///       …
///       static pawl::Next<pawl::Go<TryingToStop>> stop(Running, const Snapshot&) { … }  // it is to stop
///
///       static pawl::Result<Observed> collect(Tools& tools, const Desired&, const pawl::CollectContext&);
///     };
///     static_assert(pawl::verified_worker<Pump>);
///
/// States are empty types: where the worker is. What a state may do is the list in the return type of `next`;
/// from these lists the compiler makes the worker's machine and checks it. `next` and `stop` are pure: they
/// see a snapshot and say what is to be done, with a reason. `stop` is asked instead of `next` when the
/// worker is to be parked, removed or built afresh; states in which it rests need none, and states in which
/// it already stops are asked by `next` alone, cannot stay idle and lead to rest. Actions are empty types,
/// too; they run on other threads, may block, must be idempotent and honour `context.stop`. Nothing here may
/// throw; what does is contained.

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

/// Where in its life a worker is. Healthy is `running` alone; operational is `running` or `degraded`.
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

/// All states of a worker; the first is where it begins.
template <class... S>
struct States {};

/// Why. A literal costs nothing; a text with live numbers is made by fmt.
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

/// What a state may answer. Nothing is done now; with `again`, it is asked again after that time, also where
/// nothing has changed.
struct Stay {
  Reason reason;
  std::optional<Duration> again{};
};
/// The worker is in another state from now on.
template <class State>
struct Go {
  Reason reason;
};
/// The action is run; the next decision comes with an observation that was begun after its end.
template <class Action>
struct Do {
  Reason reason;
};
/// The worker has done what it is for and is removed, its children before it.
struct Remove {
  Reason reason;
};
/// The worker is stopped, and a fresh instance begins.
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

/// Who a worker is; never changes.
struct WorkerIdentity {
  std::string path;  ///< unique: the names from the top down, joined by '/'
  std::string name;
  std::string type;
  std::string parent;  ///< its path; empty at the top
  Time created_at{};
};

/// What a parent sees of a child.
struct ChildView {
  std::string_view name;
  std::string_view type;
  std::string_view state;
  std::string_view reason;
  Phase phase = Phase::stopped;
  bool fresh = true;     ///< its observation is not stale and its configuration can be read
  bool failing = false;  ///< its last action failed

  bool is_operational() const { return phase == Phase::running || phase == Phase::degraded; }
  bool is_healthy() const { return phase == Phase::running && fresh; }
};

/// The children of a worker. The questions about all are true where there is none.
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

/// What a state decides on: one moment, the same for everything in it.
template <class Observed, class Desired>
struct WorkerSnapshot {
  const WorkerIdentity& identity;
  const Observed& observed;
  const Desired& desired;
  Children children{};
  Duration in_state{};            ///< since the state was entered, or the program started
  std::uint32_t failures = 0;     ///< of actions in a row in this state
  std::string_view last_error{};  ///< of the last of them
  std::uint32_t incarnation = 1;  ///< one more with each fresh instance
};

/// What an action is told.
struct ActionContext {
  const WorkerIdentity& identity;
  std::int64_t number = 0;    ///< names this order; the same when it is run again after a crash
  std::uint32_t attempt = 1;  ///< counts how often this order was begun
  std::stop_token stop{};     ///< set when it is out of time, the worker is to stop, or the program ends
};

/// What collecting is told.
struct CollectContext {
  const WorkerIdentity& identity;
  Time now{};
  std::stop_token stop{};  ///< set when it is out of time or the program ends
};

struct NoTools {};

/// The base of every worker: what is observed, what is desired (both plain structs that `pawl/codec.hpp` can
/// write) and what collecting and actions work with. Tools are used by several threads at once.
///
/// Also understood, where a worker has them:
///     static constexpr std::string_view kType = "mqtt_client";  // otherwise made of the type's name
///     static Result<Desired> derive(Desired read);   // checks and completes the configuration; pure
///     static std::vector<ChildSpec> children(const Desired&, const UserSpec&);  // pure
///     // Fields that are handed to the children as templates: their expressions are not filled in here.
///     static constexpr std::array<std::string_view, 1> kTemplates = {"child_config"};
///     // Fields whose values need the role operator; "command[1:]" is all elements but the first.
///     static constexpr std::array<std::string_view, 1> kConfidential = {"headers"};
///     static constexpr Duration kObserveEvery = 5s;  // otherwise the supervisor's
/// and an action:
///     static constexpr Duration kTimeout = 5min;     // otherwise 30 s
///     static constexpr RetryPolicy kBackoff{…};      // between failures; otherwise the supervisor's
template <class O, class D, class T = NoTools>
struct Worker {
  using Observed = O;
  using Desired = D;
  using Tools = T;
  using Snapshot = WorkerSnapshot<O, D>;
};

namespace detail {

/// "PumpWorker" and "PumpObservedState" become "pump", as a stored name.
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
