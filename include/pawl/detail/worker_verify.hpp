// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Verifies a worker at compile time. The error names the broken rule, its reason and the offender. Included
/// by `pawl/worker.hpp`.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pawl/detail/worker_rules.hpp"
#include "pawl/worker.hpp"

namespace pawl {

namespace detail {

template <class T>
struct IsNext : std::false_type {};
template <class... R>
struct IsNext<Next<R...>> : std::true_type {};

template <class... T>
struct Types {
  static constexpr std::size_t size = sizeof...(T);
};

template <class R>
struct ResultKind {
  static constexpr bool known = false;
};
template <>
struct ResultKind<Stay> {
  static constexpr bool known = true;
};
template <>
struct ResultKind<Remove> {
  static constexpr bool known = true;
};
template <>
struct ResultKind<Restart> {
  static constexpr bool known = true;
};
template <class S>
struct ResultKind<Go<S>> {
  static constexpr bool known = true;
  using State = S;
};
template <class A>
struct ResultKind<Do<A>> {
  static constexpr bool known = true;
  using Action = A;
};
template <class R>
concept IsGo = requires { typename ResultKind<R>::State; };
template <class R>
concept IsDo = requires { typename ResultKind<R>::Action; };

template <class W, class S>
concept HasNext = requires(S state, const typename W::Snapshot& now) { W::next(state, now); };
template <class W, class S>
concept HasStop = requires(S state, const typename W::Snapshot& now) { W::stop(state, now); };

template <class W, class S>
using NextOf = decltype(W::next(std::declval<S>(), std::declval<const typename W::Snapshot&>()));
template <class W, class S>
using StopOf = decltype(W::stop(std::declval<S>(), std::declval<const typename W::Snapshot&>()));

template <class S>
constexpr bool kRests = S::kPhase == Phase::stopped;
template <class S>
constexpr bool kStops = S::kPhase == Phase::stopping;
/// Whether a state has to have `stop`.
template <class S>
constexpr bool kIsAskedToStop = !kRests<S> && !kStops<S>;

template <class S>
constexpr std::size_t phases_of() {
  return (std::derived_from<S, phase::Stopped> ? 1U : 0U) +
         (std::derived_from<S, phase::Starting> ? 1U : 0U) +
         (std::derived_from<S, phase::Running> ? 1U : 0U) +
         (std::derived_from<S, phase::Degraded> ? 1U : 0U) +
         (std::derived_from<S, phase::Stopping> ? 1U : 0U);
}

constexpr bool same_letters(std::string_view left, std::string_view right) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (lower(left[i]) != lower(right[i])) return false;
  }
  return true;
}

template <class T, class... All>
constexpr std::size_t index_of(States<All...>) {
  std::size_t index = 0;
  (void)((std::same_as<T, All> ? false : (++index, true)) && ...);
  return index;
}

/// The states that a state leads to, as bits by index.
template <class W, class... R>
constexpr std::uint64_t targets_of(std::type_identity<Next<R...>>) {
  std::uint64_t found = 0;
  auto add = [&]<class One>(std::type_identity<One>) {
    if constexpr (IsGo<One>)
      found |= std::uint64_t{1} << index_of<typename ResultKind<One>::State>(typename W::States{});
  };
  (add(std::type_identity<R>{}), ...);
  return found;
}

template <class W, class S>
constexpr std::uint64_t edges_of_state(bool stop_only) {
  std::uint64_t found = 0;
  if (!stop_only || kStops<S>) found |= targets_of<W>(std::type_identity<NextOf<W, S>>{});
  if constexpr (kIsAskedToStop<S>) found |= targets_of<W>(std::type_identity<StopOf<W, S>>{});
  return found;
}

/// The targets of each state; with `stop_only`, those while stopping.
template <class W, class... S>
constexpr auto edges_of(States<S...>, bool stop_only) {
  return std::array<std::uint64_t, sizeof...(S)>{edges_of_state<W, S>(stop_only)...};
}

template <std::size_t N>
constexpr std::uint64_t reached_from(std::uint64_t set, const std::array<std::uint64_t, N>& edges) {
  for (std::uint64_t before = 0; before != set;) {
    before = set;
    for (std::size_t i = 0; i < N; ++i) {
      if (((set >> i) & 1) != 0) set |= edges[i];
    }
  }
  return set;
}

/// The actions that a worker's states name, without duplicates.
template <class... A, class R>
constexpr auto with_action(Types<A...> so_far, std::type_identity<R>) {
  if constexpr (IsDo<R>) {
    using Action = typename ResultKind<R>::Action;
    if constexpr ((std::same_as<A, Action> || ...)) {
      return so_far;
    } else {
      return Types<A..., Action>{};
    }
  } else {
    return so_far;
  }
}
template <class Found>
constexpr auto actions_in(Found found, Types<>) {
  return found;
}
template <class Found, class First, class... Rest>
constexpr auto actions_in(Found found, Types<First, Rest...>) {
  return actions_in(with_action(found, std::type_identity<First>{}), Types<Rest...>{});
}
template <class... R>
constexpr auto results_of(std::type_identity<Next<R...>>) {
  return Types<R...>{};
}
template <class W, class S>
constexpr auto results_of_state() {
  if constexpr (kIsAskedToStop<S>) {
    return []<class... N, class... T>(Types<N...>, Types<T...>) {
      return Types<N..., T...>{};
    }(results_of(std::type_identity<NextOf<W, S>>{}), results_of(std::type_identity<StopOf<W, S>>{}));
  } else {
    return results_of(std::type_identity<NextOf<W, S>>{});
  }
}
template <class W, class Found>
constexpr auto actions_of_states(Found found, States<>) {
  return found;
}
template <class W, class Found, class First, class... Rest>
constexpr auto actions_of_states(Found found, States<First, Rest...>) {
  return actions_of_states<W>(actions_in(found, results_of_state<W, First>()), States<Rest...>{});
}
/// The actions of a verified worker, as Types<Start, Stop, …>.
template <class W>
using ActionsOf = decltype(actions_of_states<W>(Types<>{}, typename W::States{}));

template <class T>
constexpr bool names_lifecycle() {
  constexpr std::array<std::string_view, 9> kForbidden{"should_run", "is_running", "enabled",
                                                       "active",     "shutdown",   "stopped",
                                                       "running",    "disabled",   "is_active"};
  for (const auto field : field_names<T>) {
    for (const auto word : kForbidden) {
      if (same_letters(field, word)) return true;
    }
  }
  return false;
}

template <class W, class S, class R>
consteval void check_result() {
  if constexpr (!ResultKind<R>::known) {
    (void)worker_rule::a_result_is_known<W, R>{};
  } else if constexpr (IsGo<R>) {
    using To = typename ResultKind<R>::State;
    constexpr bool listed = []<class... All>(States<All...>) {
      return (std::same_as<All, To> || ...);
    }(typename W::States{});
    if constexpr (!listed) (void)worker_rule::a_target_is_listed<W, To>{};
    if constexpr (std::same_as<S, To>) (void)worker_rule::going_leads_elsewhere<W, S>{};
  } else if constexpr (IsDo<R>) {
    using Action = typename ResultKind<R>::Action;
    if constexpr (!std::is_empty_v<Action>) (void)worker_rule::an_action_is_empty<W, Action>{};
    if constexpr (!requires(typename W::Tools& tools, const typename W::Desired& desired,
                            const ActionContext& context) {
                    { Action::run(tools, desired, context) } -> std::same_as<Result<void>>;
                  }) {
      (void)worker_rule::an_action_runs<W, Action>{};
    }
  }
}

template <class W, class S, class... R>
consteval void check_stopping(std::type_identity<Next<R...>>) {
  if constexpr ((std::same_as<R, Stay> || ...) || (std::same_as<R, Restart> || ...))
    (void)worker_rule::stopping_does_not_stay<W, S>{};
}

template <class W, class S, class... R>
consteval void check_stopping_targets(std::type_identity<Next<R...>>) {
  auto check = []<class One>(std::type_identity<One>) {
    if constexpr (IsGo<One>) {
      if constexpr (kIsAskedToStop<typename ResultKind<One>::State>)
        (void)worker_rule::stopping_leads_to_rest<W, S, typename ResultKind<One>::State>{};
    }
  };
  (check(std::type_identity<R>{}), ...);
}

template <class W, class S>
consteval bool check_signature() {
  if constexpr (!HasNext<W, S>) {
    (void)worker_rule::a_state_has_next<W, S>{};
    return false;
  } else if constexpr (!IsNext<NextOf<W, S>>::value) {
    (void)worker_rule::a_state_has_next<W, S>{};
    return false;
  } else if constexpr (kIsAskedToStop<S>) {
    if constexpr (!HasStop<W, S>) {
      (void)worker_rule::a_state_has_stop<W, S>{};
      return false;
    } else if constexpr (!IsNext<StopOf<W, S>>::value) {
      (void)worker_rule::a_state_has_stop<W, S>{};
      return false;
    }
  }
  return true;
}

template <class W, class S>
consteval void check_state() {
  []<class... R>(Types<R...>) { (check_result<W, S, R>(), ...); }(results_of_state<W, S>());
  using N = NextOf<W, S>;
  if constexpr (kStops<S>) {
    check_stopping<W, S>(std::type_identity<N>{});
    check_stopping_targets<W, S>(std::type_identity<N>{});
  }
  if constexpr (kIsAskedToStop<S>) check_stopping<W, S>(std::type_identity<StopOf<W, S>>{});
  constexpr auto name = type_name<S>();
  constexpr bool acts = []<class... R>(Types<R...>) {
    return (IsDo<R> || ...);
  }(results_of(std::type_identity<N>{}));
  if constexpr ((name.starts_with("TryingTo") || name.starts_with("Ensuring")) && !acts)
    (void)worker_rule::an_active_state_acts<W, S>{};
}

template <class W, class... S>
consteval bool check_list(States<S...>) {
  auto one = []<class State>(std::type_identity<State>) {
    if constexpr (!std::is_empty_v<State>) {
      (void)worker_rule::a_state_is_empty<W, State>{};
      return false;
    } else if constexpr (phases_of<State>() != 1) {
      (void)worker_rule::a_state_has_one_phase<W, State>{};
      return false;
    } else {
      constexpr int same = ((same_letters(type_name<State>(), type_name<S>()) ? 1 : 0) + ...);
      if constexpr (same != 1) (void)worker_rule::a_state_is_listed_once<W, State>{};
      return same == 1;
    }
  };
  return (one(std::type_identity<S>{}) && ...);
}

/// Whether stopping may end in this state: it is a stopped state or may answer Remove.
template <class W, class S>
constexpr bool ends_in() {
  constexpr auto removes = []<class... R>(std::type_identity<Next<R...>>) {
    return (std::same_as<R, Remove> || ...);
  };
  if constexpr (kIsAskedToStop<S>) {
    return removes(std::type_identity<StopOf<W, S>>{});
  } else {
    return kRests<S> || removes(std::type_identity<NextOf<W, S>>{});
  }
}

template <class W, class... S>
constexpr std::uint64_t ends_of(States<S...>) {
  std::uint64_t found = 0;
  std::size_t index = 0;
  ((found |= (ends_in<W, S>() ? std::uint64_t{1} : std::uint64_t{0}) << index++), ...);
  return found;
}

/// The worker's table: the targets of every state, in general and while stopping.
template <class W>
inline constexpr auto kEdges = edges_of<W>(typename W::States{}, false);
template <class W>
inline constexpr auto kStopEdges = edges_of<W>(typename W::States{}, true);

template <class W, class S>
consteval void check_ways() {
  constexpr auto at = index_of<S>(typename W::States{});
  constexpr bool is_reached = ((reached_from(1, kEdges<W>) >> at) & 1) != 0;
  if constexpr (!is_reached) (void)worker_rule::a_state_is_reachable<W, S>{};
  constexpr auto ends =
      reached_from(std::uint64_t{1} << at, kStopEdges<W>) & ends_of<W>(typename W::States{});
  if constexpr (ends == 0) (void)worker_rule::stopping_ends<W, S>{};
}

template <class W>
consteval void check_functions() {
  using Desired = typename W::Desired;
  if constexpr (!requires(typename W::Tools& tools, const Desired& desired, const CollectContext& context) {
                  { W::collect(tools, desired, context) } -> std::same_as<Result<typename W::Observed>>;
                }) {
    (void)worker_rule::a_worker_collects<W>{};
  }
  if constexpr (requires { &W::derive; }) {
    if constexpr (!std::convertible_to<decltype(&W::derive), Result<Desired> (*)(Desired)>)
      (void)worker_rule::deriving_is_pure<W>{};
  }
  if constexpr (requires { &W::children; }) {
    if constexpr (!std::convertible_to<decltype(&W::children),
                                       std::vector<ChildSpec> (*)(const Desired&, const UserSpec&)> &&
                  !std::convertible_to<decltype(&W::children),
                                       Result<std::vector<ChildSpec>> (*)(const Desired&, const UserSpec&)>)
      (void)worker_rule::children_are_pure<W>{};
  }
  if constexpr (!std::is_aggregate_v<Desired> || !std::is_aggregate_v<typename W::Observed>) {
    (void)worker_rule::desired_is_plain<W>{};
  } else if constexpr (names_lifecycle<Desired>()) {
    (void)worker_rule::desired_has_no_lifecycle<W, Desired>{};
  } else {
    // The codec reports types that it cannot encode.
    (void)&Codec<Desired>::write;
    (void)&Codec<typename W::Observed>::write;
  }
}

template <class W>
consteval bool verify_worker() {
  if constexpr (!requires { typename W::States; }) {
    (void)worker_rule::a_worker_has_states<W>{};
  } else {
    []<class... S>(States<S...>) {
      if constexpr (sizeof...(S) == 0) {
        (void)worker_rule::a_worker_has_states<W, S...>{};
      } else if constexpr (sizeof...(S) > 32) {
        (void)worker_rule::a_worker_has_few_states<W, S...>{};
      } else if constexpr (check_list<W>(States<S...>{})) {
        if constexpr ((check_signature<W, S>() && ...)) {
          (check_state<W, S>(), ...);
          []<class First, class... Rest>(States<First, Rest...>) {
            if constexpr (!kRests<First>) (void)worker_rule::the_first_state_rests<W, First>{};
          }(States<S...>{});
          (check_ways<W, S>(), ...);
        }
      }
    }(typename W::States{});
    check_functions<W>();
  }
  return true;
}

}  // namespace detail

/// True, or a compile error that names the broken rule. Registering a worker verifies it, too.
template <class W>
inline constexpr bool verified_worker = detail::verify_worker<W>();

}  // namespace pawl
