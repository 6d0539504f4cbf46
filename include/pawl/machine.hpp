// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A state machine as one closed table that the compiler checks.
///
///     enum class Door { closed, open, locked };
///     struct Push {}; struct Pull {}; struct TurnKey { std::string key; };
///     struct Log { int opened = 0; std::string last_key; };
///
///     inline constexpr auto door = pawl::machine<Door, Log>("door")
///         .initial(Door::closed)
///         .on<Push>(Door::closed, Door::open, [](Log& log) { ++log.opened; })
///         .on<Pull>(Door::open, Door::closed)
///         .on<TurnKey>(Door::closed, Door::locked,
///                      pawl::when([](const Log& log, const TurnKey& turn) { return turn.key != log.last_key;
///                      }))
///         .terminal(Door::locked);
///     static_assert(pawl::verified<door>);
///
/// Guards and updates are captureless functions; they decide, they never act. A guard takes (), (const Data&)
/// or (const Data&, const Event&). An update takes (), (Data&), (Data&, const Event&) or (Data&, const
/// Event&, Effects&), the last to set timers, send messages and ask for work in the same commit. Several rows
/// for one (state, event) are tried in the order they are written; all but the last need a guard. Everything
/// here is constexpr data; safe from any thread.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pawl/names.hpp"

namespace pawl {

class Effects;

/// Who sees the data of a machine's instances and the payloads of its events through the API: this role and
/// those above it. Others see that an instance is there, and its state.
enum class Readers : std::uint8_t { viewers, operators, admins };

/// A guard, to be given with a transition.
template <class Guard>
struct When {};

template <class Guard>
consteval When<Guard> when(Guard) {
  static_assert(std::is_empty_v<Guard>,
                "a guard must not capture; wrap a named function as pawl::call<&function>");
  return {};
}

/// A named function as a guard or an update: `pawl::call<&mend>`.
template <auto Function>
struct Call {
  template <class... Args>
    requires std::invocable<decltype(Function), Args...>
  constexpr auto operator()(Args&&... args) const {
    return Function(std::forward<Args>(args)...);
  }
};
template <auto Function>
inline constexpr Call<Function> call{};

/// Several source states for one row: `.on<Stop>(pawl::from(S::running, S::paused), S::stopped)`.
template <class S, std::size_t N>
struct From {
  std::array<S, N> states;
};

template <class S, std::same_as<S>... More>
consteval auto from(S first, More... more) {
  return From<S, 1 + sizeof...(More)>{{first, more...}};
}

namespace detail {

/// A set of states, by the enumerators' values.
struct StateSet {
  std::array<std::uint64_t, kEnumLimit / 64> words{};
  bool out_of_range = false;

  template <class S>
  constexpr void add(S state) {
    const auto index = static_cast<std::size_t>(state);
    if (index < kEnumLimit) {
      words[index / 64] |= std::uint64_t{1} << (index % 64);
    } else {
      out_of_range = true;
    }
  }
  template <class S>
  constexpr bool contains(S state) const {
    const auto index = static_cast<std::size_t>(state);
    return index < kEnumLimit && ((words[index / 64] >> (index % 64)) & 1) != 0;
  }
};

/// A list with a fixed capacity that is filled by the compiler only.
template <class T, std::size_t Capacity>
struct Bounded {
  std::array<T, Capacity> items{};
  std::size_t size = 0;

  consteval void push(T item) {
    if (size == Capacity) throw "too many entries in a machine's definition";
    items[size++] = item;
  }
  constexpr const T* begin() const { return items.data(); }
  constexpr const T* end() const { return items.data() + size; }
};

struct NoGuard {};
struct NoUpdate {};

/// The functions of a row live in its type, the rest in RowInfo.
template <class E, class G, class U>
struct Row {
  using Event = E;
  using Guard = G;
  using Update = U;
};

template <class S>
struct RowInfo {
  StateSet from;
  S to{};
  bool internal = false;
  bool guarded = false;
  bool updates = false;
};

template <class S>
struct StateText {
  S state{};
  std::string_view text;
};
struct EventText {
  std::string_view type;  // the event type's full name
  std::string_view text;
};
template <class S>
struct Recovery {
  S from{};
  S to{};
};

inline constexpr std::size_t kMaxTexts = 32;

/// What a definition says besides its rows.
template <class S>
struct Traits {
  std::string_view name;
  Bounded<S, 2> initial{};
  StateSet terminal{};
  bool endless = false;
  bool generations = false;
  Readers readers = Readers::viewers;
  Bounded<std::string_view, kMaxTexts> former_names{};
  Bounded<StateText<S>, kMaxTexts> state_names{};
  Bounded<StateText<S>, kMaxTexts> former_states{};
  Bounded<EventText, kMaxTexts> event_names{};
  Bounded<EventText, kMaxTexts> former_events{};
  Bounded<Recovery<S>, kMaxTexts> recoveries{};
};

template <class...>
struct List {};

template <class... Es, class E>
consteval auto with_event(List<Es...>, std::type_identity<E>) {
  if constexpr ((std::same_as<E, Es> || ...)) {
    return List<Es...>{};
  } else {
    return List<Es..., E>{};
  }
}

template <class G, class U>
struct Parts {
  using Guard = G;
  using Update = U;
};

template <class G, class U, class Guard>
consteval auto with_part(Parts<G, U>, When<Guard>) {
  static_assert(std::same_as<G, NoGuard>, "a transition has one guard");
  return Parts<Guard, U>{};
}
template <class G, class U, class Update>
consteval auto with_part(Parts<G, U>, Update) {
  static_assert(std::is_empty_v<Update>,
                "an update must not capture; wrap a named function as pawl::call<&function>");
  static_assert(std::same_as<U, NoUpdate>, "a transition has one update");
  return Parts<G, Update>{};
}
consteval auto parts_of(auto so_far) { return so_far; }
consteval auto parts_of(auto so_far, auto first, auto... rest) {
  return parts_of(with_part(so_far, first), rest...);
}

}  // namespace detail

/// The table. Made by `pawl::machine<State, Data>("name")` and grown by the calls below; each returns a new
/// value.
template <ScopedEnum S, class D, class Events = detail::List<>, class Rows = detail::List<>,
          class Upgrades = detail::List<>>
class Machine;

template <ScopedEnum S, class D, class... Es, class... Rs, class... Us>
class Machine<S, D, detail::List<Es...>, detail::List<Rs...>, detail::List<Us...>> {
 public:
  using State = S;
  using Data = D;
  using Events = detail::List<Es...>;
  using Rows = detail::List<Rs...>;
  using Upgrades = detail::List<Us...>;
  static constexpr std::size_t kRows = sizeof...(Rs);
  /// The schema number of Data: one more than the number of upgrades.
  static constexpr int kSchema = 1 + static_cast<int>(sizeof...(Us));

  detail::Traits<S> traits;
  std::array<detail::RowInfo<S>, kRows> rows{};

  /// Where a new instance begins.
  consteval auto initial(S state) const {
    auto copy = *this;
    copy.traits.initial.push(state);
    return copy;
  }

  /// States in which an instance is finished.
  template <std::same_as<S>... More>
  consteval auto terminal(S first, More... more) const {
    auto copy = *this;
    copy.traits.terminal.add(first);
    (copy.traits.terminal.add(more), ...);
    return copy;
  }

  /// This machine never ends: it has no terminal state, on purpose.
  consteval auto endless() const {
    auto copy = *this;
    copy.traits.endless = true;
    return copy;
  }

  /// A finished key may be started again, as the next generation.
  consteval auto generations() const {
    auto copy = *this;
    copy.traits.generations = true;
    return copy;
  }

  /// Data and payloads hold secrets, and are shown to these only.
  consteval auto confidential(Readers readers = Readers::operators) const {
    auto copy = *this;
    copy.traits.readers = readers;
    return copy;
  }

  /// In `source`, E leads to `target`. Parts: a guard (`when`) and an update, in any order.
  template <class E, class... Parts>
  consteval auto on(S source, S target, Parts... parts) const {
    return add_row<E>(From<S, 1>{{source}}, target, false, parts...);
  }
  template <class E, std::size_t N, class... Parts>
  consteval auto on(From<S, N> sources, S target, Parts... parts) const {
    return add_row<E>(sources, target, false, parts...);
  }

  /// In `state`, E is accepted and recorded, and the state stays: an internal transition.
  template <class E, class... Parts>
  consteval auto stay(S state, Parts... parts) const {
    return add_row<E>(From<S, 1>{{state}}, state, true, parts...);
  }
  template <class E, std::size_t N, class... Parts>
  consteval auto stay(From<S, N> states, Parts... parts) const {
    return add_row<E>(states, states.states[0], true, parts...);
  }

  /// The stored name, where it is not the source name.
  consteval auto named(S state, std::string_view text) const {
    auto copy = *this;
    copy.traits.state_names.push({state, text});
    return copy;
  }
  template <class E>
  consteval auto named(std::string_view text) const {
    auto copy = *this;
    copy.traits.event_names.push({detail::pretty_type<E>(), text});
    return copy;
  }

  /// An older stored name that is still read. Of several former names of a machine the oldest comes last: ids
  /// are made of it, so that they outlive every rename.
  consteval auto formerly(std::string_view machine_name) const {
    auto copy = *this;
    copy.traits.former_names.push(machine_name);
    return copy;
  }
  consteval auto formerly(S state, std::string_view text) const {
    auto copy = *this;
    copy.traits.former_states.push({state, text});
    return copy;
  }
  template <class E>
  consteval auto formerly(std::string_view text) const {
    auto copy = *this;
    copy.traits.former_events.push({detail::pretty_type<E>(), text});
    return copy;
  }

  /// What `from` becomes when the owner restarts, outside the table.
  consteval auto recover(S from, S to) const {
    auto copy = *this;
    copy.traits.recoveries.push({from, to});
    return copy;
  }

  /// How data of schema `FromSchema` becomes the next one: a function from the old struct to the new one.
  template <int FromSchema, class Fn>
  consteval auto upgrade(Fn) const {
    static_assert(FromSchema == kSchema, "upgrades are declared in order, from schema 1 on, without a gap");
    static_assert(std::is_empty_v<Fn>, "an upgrade must not capture");
    using Next = Machine<S, D, Events, Rows, detail::List<Us..., Fn>>;
    return Next{traits, rows};
  }

 private:
  template <class E, std::size_t N, class... Parts>
  consteval auto add_row(From<S, N> sources, S target, bool internal, Parts... parts) const {
    using P = decltype(detail::parts_of(detail::Parts<detail::NoGuard, detail::NoUpdate>{}, parts...));
    using NewEvents = decltype(detail::with_event(Events{}, std::type_identity<E>{}));
    using NewRow = detail::Row<E, typename P::Guard, typename P::Update>;
    Machine<S, D, NewEvents, detail::List<Rs..., NewRow>, Upgrades> next{traits, {}};
    for (std::size_t i = 0; i < kRows; ++i) next.rows[i] = rows[i];
    auto& row = next.rows[kRows];
    for (const S source : sources.states) row.from.add(source);
    row.to = target;
    row.internal = internal;
    row.guarded = !std::same_as<typename P::Guard, detail::NoGuard>;
    row.updates = !std::same_as<typename P::Update, detail::NoUpdate>;
    return next;
  }
};

/// Begins a definition; `name` is the machine's stored name.
template <ScopedEnum S, class D>
consteval auto machine(std::string_view name) {
  return Machine<S, D>{detail::Traits<S>{.name = name}, {}};
}

/// The machine's type of a definition, its states and its data: `StateOf<door>`.
template <const auto& M>
using MachineOf = std::remove_cvref_t<decltype(M)>;
template <const auto& M>
using StateOf = typename MachineOf<M>::State;
template <const auto& M>
using DataOf = typename MachineOf<M>::Data;

/// The stored name of a state.
template <const auto& M>
constexpr std::string_view state_name(StateOf<M> state) {
  for (const auto& entry : M.traits.state_names) {
    if (entry.state == state) return entry.text;
  }
  return enum_name(state);
}

namespace detail {

template <const auto& M, class E>
inline constexpr bool knows_event =
    []<class... Es>(List<Es...>) { return (std::is_same_v<E, Es> || ...); }(typename MachineOf<M>::Events{});

}  // namespace detail

/// The stored name of an event.
template <const auto& M, class E>
constexpr std::string_view event_name() {
  for (const auto& entry : M.traits.event_names) {
    if (entry.type == detail::pretty_type<E>()) return entry.text;
  }
  return type_name<E>();
}

}  // namespace pawl
