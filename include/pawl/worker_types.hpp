// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The worker types of a program, by name. Built in `main`, passed to the supervisor.
///
///     pawl::WorkerTypes types;
///     // The function creates the tools of each incarnation; without one they are default-constructed.
///     types.add<Pump>([&](const pawl::WorkerIdentity&) { return PumpTools{motor}; });
///     types.add<Monitor>();
///
/// A value without global state. Not thread-safe while types are added.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/definition.hpp"
#include "pawl/detail/worker_machine.hpp"
#include "pawl/error.hpp"
#include "pawl/worker.hpp"

namespace pawl {

/// The answer of a state, as indices into the type.
struct Decision {
  enum class Kind : std::uint8_t { stay, go, act, remove, restart };
  Kind kind = Kind::stay;
  std::size_t target = 0;  ///< the state to go to, or the action
  Reason reason;
  std::optional<Duration> again{};
};

/// A type-erased snapshot.
struct SnapshotParts {
  const WorkerIdentity& identity;
  const void* observed = nullptr;
  const void* desired = nullptr;
  Children children{};
  Duration in_state{};
  std::uint32_t failures = 0;
  std::string_view last_error{};
  std::uint32_t incarnation = 1;
};

/// An observation, and the same as JSON.
struct Observation {
  std::shared_ptr<const void> value;
  std::string text;
};

/// A worker's type at run time. Its functions turn exceptions of the worker into the error `worker_threw`.
/// Reading is safe concurrently. The functions may be called from any thread, for one worker's tools from
/// several at once.
struct WorkerType {
  struct State {
    std::string name;
    Phase phase = Phase::stopped;
  };
  struct Action {
    std::string name;
    Duration timeout = std::chrono::seconds(30);
    std::optional<RetryPolicy> backoff{};
    Result<void> (*run)(void* tools, const void* desired, const ActionContext& context) = nullptr;
  };

  static constexpr std::size_t kActionsMax = 64;

  std::string name;
  Definition machine;
  std::vector<State> states;  ///< in the order of `States`; the first is initial
  std::vector<Action> actions;
  std::vector<std::string> fields;  ///< that a configuration may have
  /// The fields that are templates for the children; see `Worker`.
  std::vector<std::string> templates{};
  /// Of these fields, those whose values only operators see; see `Worker`.
  std::vector<std::string> confidential{};
  std::optional<Duration> observe_every{};
  bool has_children = false;

  std::function<Result<std::shared_ptr<void>>(const WorkerIdentity&)> make_tools;
  Result<Decision> (*decide)(std::size_t state, bool stopping, const SnapshotParts& parts) = nullptr;
  Result<Observation> (*collect)(void* tools, const void* desired, const CollectContext& context) = nullptr;
  /// Reads the desired state from JSON.
  Result<std::shared_ptr<const void>> (*derive)(std::string_view json) = nullptr;
  Result<std::string> (*show_desired)(const void* desired) = nullptr;
  Result<std::string> (*show_observed)(const void* observed) = nullptr;
  Result<std::shared_ptr<const void>> (*read_observed)(std::string_view json) = nullptr;
  Result<std::vector<ChildSpec>> (*children)(const void* desired, const UserSpec& spec) = nullptr;

  /// By name, ignoring case. Error: `spec_invalid`, with the known names.
  Result<std::size_t> find_state(std::string_view text) const;
};

namespace detail {

/// The exception being handled, as an error. Rethrows the crash of a simulated process.
Error error_of_thrown(std::string_view worker, std::string_view function);

/// Runs a function of a worker; any exception becomes the error `worker_threw`.
template <class F>
auto contained(std::string_view worker, std::string_view function, F run) -> decltype(run()) {
  try {
    return run();
  } catch (...) {
    return fail(error_of_thrown(worker, function));
  }
}

template <class... T>
constexpr std::size_t count_of(Types<T...>) {
  return sizeof...(T);
}

template <class W>
struct WorkerCalls {
  using Snapshot = typename W::Snapshot;
  using Observed = typename W::Observed;
  using Desired = typename W::Desired;
  using Tools = typename W::Tools;

  template <class A, class... All>
  static constexpr std::size_t action_index(Types<All...>) {
    std::size_t index = 0;
    (void)((std::same_as<A, All> ? false : (++index, true)) && ...);
    return index;
  }

  static Decision number(Stay result) {
    return {Decision::Kind::stay, 0, std::move(result.reason), result.again};
  }
  static Decision number(Remove result) { return {Decision::Kind::remove, 0, std::move(result.reason), {}}; }
  static Decision number(Restart result) {
    return {Decision::Kind::restart, 0, std::move(result.reason), {}};
  }
  template <class S>
  static Decision number(Go<S> result) {
    return {Decision::Kind::go, index_of<S>(typename W::States{}), std::move(result.reason), {}};
  }
  template <class A>
  static Decision number(Do<A> result) {
    return {Decision::Kind::act, action_index<A>(ActionsOf<W>{}), std::move(result.reason), {}};
  }
  template <class... R>
  static Decision number(const Next<R...>& next) {
    return std::visit([](auto result) { return number(std::move(result)); }, next.result());
  }

  template <class S>
  static Decision ask(bool stopping, const Snapshot& now) {
    if constexpr (kIsAskedToStop<S>) {
      if (stopping) return number(W::stop(S{}, now));
    }
    return number(W::next(S{}, now));
  }

  static Result<Decision> decide(std::size_t state, bool stopping, const SnapshotParts& parts) {
    const Snapshot now{.identity = parts.identity,
                       .observed = *static_cast<const Observed*>(parts.observed),
                       .desired = *static_cast<const Desired*>(parts.desired),
                       .children = parts.children,
                       .in_state = parts.in_state,
                       .failures = parts.failures,
                       .last_error = parts.last_error,
                       .incarnation = parts.incarnation};
    return contained(worker_type_name<W>(), "next", [&]() -> Result<Decision> {
      static constexpr auto asks = []<class... S>(States<S...>) {
        return std::array<Decision (*)(bool, const Snapshot&), sizeof...(S)>{&ask<S>...};
      }(typename W::States{});
      return asks[state](stopping, now);
    });
  }

  static Result<Observation> collect(void* tools, const void* desired, const CollectContext& context) {
    return contained(worker_type_name<W>(), "collect", [&]() -> Result<Observation> {
      PAWL_TRY(auto observed,
               W::collect(*static_cast<Tools*>(tools), *static_cast<const Desired*>(desired), context));
      PAWL_TRY(auto text, encode(observed));
      return Observation{std::make_shared<const Observed>(std::move(observed)), std::move(text)};
    });
  }

  static Result<std::shared_ptr<const void>> derive(std::string_view json) {
    return contained(worker_type_name<W>(), "derive", [&]() -> Result<std::shared_ptr<const void>> {
      PAWL_TRY(auto read, decode<Desired>(json));
      if constexpr (requires { W::derive(std::move(read)); }) {
        PAWL_TRY(auto derived, W::derive(std::move(read)));
        return std::make_shared<const Desired>(std::move(derived));
      } else {
        return std::make_shared<const Desired>(std::move(read));
      }
    });
  }

  static Result<std::string> show_desired(const void* desired) {
    return encode(*static_cast<const Desired*>(desired));
  }
  static Result<std::string> show_observed(const void* observed) {
    return encode(*static_cast<const Observed*>(observed));
  }
  static Result<std::shared_ptr<const void>> read_observed(std::string_view json) {
    PAWL_TRY(auto read, decode<Observed>(json));
    return std::make_shared<const Observed>(std::move(read));
  }
  static Result<std::vector<ChildSpec>> children(const void* desired, const UserSpec& spec) {
    return contained(worker_type_name<W>(), "children", [&]() -> Result<std::vector<ChildSpec>> {
      if constexpr (requires { W::children(*static_cast<const Desired*>(desired), spec); }) {
        return W::children(*static_cast<const Desired*>(desired), spec);
      } else {
        return std::vector<ChildSpec>{};
      }
    });
  }

  template <class A>
  static WorkerType::Action action() {
    WorkerType::Action made{.name = std::string(type_name<A>())};
    if constexpr (requires { A::kTimeout; }) made.timeout = A::kTimeout;
    if constexpr (requires { A::kBackoff; }) made.backoff = A::kBackoff;
    made.run = [](void* tools, const void* desired, const ActionContext& context) {
      return contained(worker_type_name<W>(), type_name<A>(), [&] {
        return A::run(*static_cast<Tools*>(tools), *static_cast<const Desired*>(desired), context);
      });
    };
    return made;
  }
};

}  // namespace detail

/// The run-time form of a worker; `make` creates the tools of each incarnation.
template <class W>
WorkerType define_worker(std::function<Result<std::shared_ptr<void>>(const WorkerIdentity&)> make) {
  static_assert(verified_worker<W>);
  static_assert(detail::count_of(detail::ActionsOf<W>{}) <= WorkerType::kActionsMax,
                "a worker has at most 64 actions; split it into several workers");
  using Calls = detail::WorkerCalls<W>;
  WorkerType made;
  made.name = worker_type_name<W>();
  made.machine = define<worker_machine<W>>();
  [&]<class... S>(States<S...>) {
    (made.states.push_back({std::string(type_name<S>()), S::kPhase}), ...);
  }(typename W::States{});
  [&]<class... A>(detail::Types<A...>) {
    (made.actions.push_back(Calls::template action<A>()), ...);
  }(detail::ActionsOf<W>{});
  for (const auto field : detail::field_names<typename W::Desired>) made.fields.emplace_back(field);
  if constexpr (requires { W::kTemplates; })
    made.templates.assign(std::begin(W::kTemplates), std::end(W::kTemplates));
  if constexpr (requires { W::kConfidential; })
    made.confidential.assign(std::begin(W::kConfidential), std::end(W::kConfidential));
  if constexpr (requires { W::kObserveEvery; }) made.observe_every = W::kObserveEvery;
  made.has_children =
      requires(const typename W::Desired& desired, const UserSpec& spec) { W::children(desired, spec); };
  made.make_tools = std::move(make);
  made.decide = &Calls::decide;
  made.collect = &Calls::collect;
  made.derive = &Calls::derive;
  made.show_desired = &Calls::show_desired;
  made.show_observed = &Calls::show_observed;
  made.read_observed = &Calls::read_observed;
  made.children = &Calls::children;
  return made;
}

/// Worker types by name; `add` verifies each worker at compile time. Reading is safe concurrently, adding is
/// not.
class WorkerTypes {
 public:
  /// `make` creates the tools of an incarnation of this identity; it returns `Tools`, `Result<Tools>` or a
  /// non-null shared pointer.
  template <class W, class Make>
  WorkerTypes& add(Make make) {
    using Tools = typename W::Tools;
    return add(define_worker<W>(
        [make = std::move(make)](const WorkerIdentity& identity) -> Result<std::shared_ptr<void>> {
          return detail::contained(worker_type_name<W>(), "creating its tools",
                                   [&]() -> Result<std::shared_ptr<void>> {
                                     using Made = decltype(make(identity));
                                     if constexpr (std::same_as<Made, Result<Tools>>) {
                                       PAWL_TRY(auto tools, make(identity));
                                       return std::make_shared<Tools>(std::move(tools));
                                     } else if constexpr (std::convertible_to<Made, std::shared_ptr<Tools>>) {
                                       return std::shared_ptr<Tools>(make(identity));
                                     } else {
                                       return std::make_shared<Tools>(make(identity));
                                     }
                                   });
        }));
  }
  /// With default-constructed tools.
  template <class W>
  WorkerTypes& add() {
    return add<W>([](const WorkerIdentity&) { return std::make_shared<typename W::Tools>(); });
  }
  /// `validate` reports a duplicate name and too many actions.
  WorkerTypes& add(WorkerType type);

  /// Errors: `duplicate_machine`, `spec_invalid`.
  Result<void> validate() const;
  /// Error: `unknown_worker_type`, with the known names and the nearest one.
  Result<std::shared_ptr<const WorkerType>> find(std::string_view name) const;
  std::vector<std::shared_ptr<const WorkerType>> all() const;

 private:
  std::map<std::string, std::shared_ptr<const WorkerType>, std::less<>> types_;
  std::vector<Error> problems_;
};

}  // namespace pawl
