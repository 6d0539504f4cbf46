// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Verifies a machine at compile time. The error names the rule, the state and the event.
///
///     static_assert(pawl::verified<door>);
///     // error: … a_transition_leaves_a_terminal_state<Door::locked, "Push"> …
///
/// Firing and defining a machine verify it, too, so that no unverified machine can run.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "pawl/machine.hpp"

namespace pawl {
namespace rule {

// One type per rule: instantiating it is the error, its arguments are the offenders.
// NOLINTBEGIN(readability-identifier-naming): the names read as sentences in the compiler's message
#define PAWL_DETAIL_RULE(name, text)                                \
  template <auto State, FixedString Event>                          \
  struct name {                                                     \
    static_assert(State == static_cast<decltype(State)>(-1), text); \
  }
PAWL_DETAIL_RULE(unknown_state, "a transition names a state that the enum does not have");
PAWL_DETAIL_RULE(two_targets, "one (state, event) has two targets and the first has no guard");
PAWL_DETAIL_RULE(a_transition_leaves_a_terminal_state, "a transition leaves a terminal state");
#undef PAWL_DETAIL_RULE

template <auto State>
struct undeclared_state {
  static_assert(State == static_cast<decltype(State)>(-1), "a terminal or recovery state is not in the enum");
};
template <auto State>
struct unreachable_state {
  static_assert(State == static_cast<decltype(State)>(-1),
                "no transition leads to this state from the initial one");
};
template <auto State>
struct no_way_to_a_terminal_state {
  static_assert(
      State == static_cast<decltype(State)>(-1),
      "no terminal state can be reached from this state; a machine that never ends says .endless()");
};
template <auto State>
struct recovery_of_a_terminal_state {
  static_assert(State == static_cast<decltype(State)>(-1), "a finished instance is not recovered");
};
template <FixedString Name>
struct name_used_twice {
  static_assert(Name.view().empty(), "two states or two events have the same stored name");
};
// NOLINTEND(readability-identifier-naming)

}  // namespace rule

namespace detail {

/// Text as a template argument of exactly its size.
template <auto Text>
constexpr auto fixed() {
  return FixedString<Text().size() + 1>(Text());
}

template <const auto& M>
consteval auto row_event_names() {
  return []<class... Rs>(List<Rs...>) {
    return std::array<std::string_view, sizeof...(Rs)>{event_name<M, typename Rs::Event>()...};
  }(typename MachineOf<M>::Rows{});
}

template <const auto& M>
consteval auto row_event_types() {
  return []<class... Rs>(List<Rs...>) {
    return std::array<std::string_view, sizeof...(Rs)>{pretty_type<typename Rs::Event>()...};
  }(typename MachineOf<M>::Rows{});
}

template <const auto& M>
consteval auto event_names() {
  return []<class... Es>(List<Es...>) {
    return std::array<std::string_view, sizeof...(Es)>{event_name<M, Es>()...};
  }(typename MachineOf<M>::Events{});
}

template <class S>
struct Offence {
  bool found = false;
  S state{};
  std::size_t row = 0;
};

template <class S>
constexpr bool is_known(S state) {
  return !enum_name(state).empty();
}

template <const auto& M>
consteval Offence<StateOf<M>> find_unknown_state() {
  using S = StateOf<M>;
  for (std::size_t row = 0; row < M.rows.size(); ++row) {
    if (!is_known(M.rows[row].to)) return {true, M.rows[row].to, row};
    for (std::size_t i = 0; i < kEnumLimit; ++i) {
      const auto state = static_cast<S>(i);
      if (M.rows[row].from.contains(state) && !is_known(state)) return {true, state, row};
    }
    if (M.rows[row].from.out_of_range) return {true, static_cast<S>(kEnumLimit), row};
  }
  return {};
}

/// A state without a name that is declared terminal or part of a recovery.
template <const auto& M>
consteval Offence<StateOf<M>> find_undeclared_state() {
  using S = StateOf<M>;
  if (M.traits.terminal.out_of_range) return {true, static_cast<S>(kEnumLimit), 0};
  for (std::size_t i = 0; i < kEnumLimit; ++i) {
    const auto state = static_cast<S>(i);
    if (M.traits.terminal.contains(state) && !is_known(state)) return {true, state, 0};
  }
  for (const auto& recovery : M.traits.recoveries) {
    if (!is_known(recovery.from)) return {true, recovery.from, 0};
    if (!is_known(recovery.to)) return {true, recovery.to, 0};
  }
  return {};
}

template <const auto& M>
consteval Offence<StateOf<M>> find_two_targets() {
  constexpr auto events = row_event_types<M>();
  for (const auto state : enum_values<StateOf<M>>) {
    for (std::size_t later = 0; later < M.rows.size(); ++later) {
      if (!M.rows[later].from.contains(state)) continue;
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const bool same = events[earlier] == events[later] && M.rows[earlier].from.contains(state);
        if (same && !M.rows[earlier].guarded) return {true, state, later};
      }
    }
  }
  return {};
}

template <const auto& M>
consteval Offence<StateOf<M>> find_exit_from_terminal() {
  for (std::size_t row = 0; row < M.rows.size(); ++row) {
    for (const auto state : enum_values<StateOf<M>>) {
      if (M.traits.terminal.contains(state) && M.rows[row].from.contains(state)) return {true, state, row};
    }
  }
  return {};
}

/// Grows `set` along the transitions and recoveries until nothing changes.
template <const auto& M>
consteval StateSet closure(StateSet set, bool forward) {
  for (bool grown = true; grown;) {
    grown = false;
    auto connect = [&](auto from, auto to) {
      const auto have = forward ? from : to;
      const auto next = forward ? to : from;
      if (!set.contains(have) || set.contains(next)) return;
      set.add(next);
      grown = true;
    };
    for (const auto& row : M.rows) {
      if (row.internal) continue;
      for (const auto state : enum_values<StateOf<M>>) {
        if (row.from.contains(state)) connect(state, row.to);
      }
    }
    for (const auto& recovery : M.traits.recoveries) connect(recovery.from, recovery.to);
  }
  return set;
}

template <const auto& M>
consteval Offence<StateOf<M>> find_outside(StateSet set) {
  for (const auto state : enum_values<StateOf<M>>) {
    if (!set.contains(state)) return {true, state, 0};
  }
  return {};
}

template <const auto& M>
consteval Offence<StateOf<M>> find_unreachable() {
  StateSet start;
  start.add(M.traits.initial.items[0]);
  return find_outside<M>(closure<M>(start, true));
}

template <const auto& M>
consteval Offence<StateOf<M>> find_dead_end() {
  if (M.traits.endless) return {};
  return find_outside<M>(closure<M>(M.traits.terminal, false));
}

template <const auto& M>
consteval Offence<StateOf<M>> find_recovered_terminal() {
  for (const auto& recovery : M.traits.recoveries) {
    if (M.traits.terminal.contains(recovery.from)) return {true, recovery.from, 0};
  }
  return {};
}

/// The first stored name, present or former, that two states or two events share; empty if there is none.
template <const auto& M>
consteval std::string_view find_shared_name() {
  Bounded<std::string_view, kEnumLimit + kMaxTexts> seen;
  for (const auto state : enum_values<StateOf<M>>) seen.push(state_name<M>(state));
  for (const auto& entry : M.traits.former_states) seen.push(entry.text);
  for (const auto& name : seen) {
    if (std::count(seen.begin(), seen.end(), name) > 1) return name;
  }
  Bounded<std::string_view, event_names<M>().size() + kMaxTexts> events;
  for (const auto name : event_names<M>()) events.push(name);
  for (const auto& entry : M.traits.former_events) events.push(entry.text);
  for (const auto& name : events) {
    if (std::count(events.begin(), events.end(), name) > 1) return name;
  }
  return {};
}

template <const auto& M>
consteval bool verify() {
  using S = StateOf<M>;
  static_assert(M.traits.initial.size == 1, "a machine has exactly one .initial(state)");
  static_assert(!M.traits.name.empty(), "a machine has a name");
  static_assert(is_known(M.traits.initial.items[0]), "the initial state is not in the enum");
  static_assert(!M.traits.endless || M.traits.terminal.words == StateSet{}.words,
                "a machine that is .endless() has no terminal state");
  constexpr auto unknown = find_unknown_state<M>();
  if constexpr (unknown.found) {
    constexpr auto event = [] { return row_event_names<M>()[find_unknown_state<M>().row]; };
    (void)rule::unknown_state<unknown.state, fixed<event>()>{};
  } else if constexpr (constexpr auto undeclared = find_undeclared_state<M>(); undeclared.found) {
    (void)rule::undeclared_state<undeclared.state>{};
  } else {
    constexpr auto twice = find_two_targets<M>();
    if constexpr (twice.found) {
      constexpr auto event = [] { return row_event_names<M>()[find_two_targets<M>().row]; };
      (void)rule::two_targets<twice.state, fixed<event>()>{};
    }
    constexpr auto exit = find_exit_from_terminal<M>();
    if constexpr (exit.found) {
      constexpr auto event = [] { return row_event_names<M>()[find_exit_from_terminal<M>().row]; };
      (void)rule::a_transition_leaves_a_terminal_state<exit.state, fixed<event>()>{};
    }
    constexpr auto unreachable = find_unreachable<M>();
    if constexpr (unreachable.found) (void)rule::unreachable_state<unreachable.state>{};
    constexpr auto dead_end = find_dead_end<M>();
    if constexpr (dead_end.found) (void)rule::no_way_to_a_terminal_state<dead_end.state>{};
    constexpr auto recovered = find_recovered_terminal<M>();
    if constexpr (recovered.found) (void)rule::recovery_of_a_terminal_state<recovered.state>{};
    constexpr auto shared = [] { return find_shared_name<M>(); };
    if constexpr (!shared().empty()) (void)rule::name_used_twice<fixed<shared>()>{};
  }
  static_assert(enum_values<S>.size() > 0, "the enum has no enumerators from 0 to 127");
  return true;
}

}  // namespace detail

/// True, or a compile error that names the broken rule.
template <const auto& M>
inline constexpr bool verified = detail::verify<M>();

}  // namespace pawl
