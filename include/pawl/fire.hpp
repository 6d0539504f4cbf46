// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fires events in memory: the pure heart that the engine, the row machines and the simulation share.
///
///     pawl::Local<door> front;
///     front.send(Push{}).value();                       // closed -> open
///     front.send(TurnKey{"k"}).error().message();       // door is open: it does not accept TurnKey; legal:
///     Pull
///
/// `fire<door>(state, data, event)` is the same without an object and costs a few nanoseconds.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pawl/error.hpp"
#include "pawl/machine.hpp"
#include "pawl/verify.hpp"

namespace pawl {

/// What became of an event.
enum class Verdict : std::uint8_t {
  fired,    ///< the transition was made
  illegal,  ///< the state has no row for this event
  guarded,  ///< every row's guard refused
};

/// Everything that the error for a refused event says.
struct Refused {
  std::string_view machine;
  std::string_view key;  ///< empty where there is none
  std::string_view state;
  bool finished = false;
  std::string_view event;
  std::span<const std::string_view> legal;
};

/// The error for an event that was not fired: `finished_instance`, `illegal_event` or `guard_refused`.
Error refusal(Verdict verdict, const Refused& refused);

namespace detail {

template <class Guard, class D, class E>
constexpr bool allows(const D& data, const E& event) {
  if constexpr (std::is_same_v<Guard, NoGuard>) {
    return true;
  } else if constexpr (std::is_invocable_r_v<bool, Guard, const D&, const E&>) {
    return Guard{}(data, event);
  } else if constexpr (std::is_invocable_r_v<bool, Guard, const D&>) {
    return Guard{}(data);
  } else {
    static_assert(std::is_invocable_r_v<bool, Guard>,
                  "a guard takes (), (const Data&) or (const Data&, const Event&) and returns bool");
    return Guard{}();
  }
}

/// Whether the update asks for Effects, so that it can only run where there are some.
template <class Update, class D, class E>
inline constexpr bool wants_effects =
    !std::is_same_v<Update, NoUpdate> && !std::is_invocable_v<Update, D&, const E&> &&
    std::is_invocable_v<Update, D&, const E&, Effects&>;

template <class Update, class D, class E>
constexpr void update(D& data, const E& event, Effects* effects) {
  if constexpr (std::is_same_v<Update, NoUpdate>) {
  } else if constexpr (std::is_invocable_v<Update, D&, const E&>) {
    Update{}(data, event);
  } else if constexpr (wants_effects<Update, D, E>) {
    Update{}(data, event, *effects);
  } else if constexpr (std::is_invocable_v<Update, D&>) {
    Update{}(data);
  } else {
    static_assert(std::is_invocable_v<Update>,
                  "an update takes (), (Data&), (Data&, const Event&) or (Data&, const Event&, Effects&)");
    Update{}();
  }
}

inline constexpr std::uint8_t kNone = 0xff;

/// Per event, what each state does: the first row and, where no row of the event is guarded, the target.
struct Cell {
  std::uint8_t row = kNone;
  std::uint8_t target = 0;
};

template <const auto& M>
inline constexpr std::size_t state_slots = static_cast<std::size_t>(enum_values<StateOf<M>>.back()) + 1;

template <class E, class... Rs>
consteval std::array<bool, sizeof...(Rs)> rows_of_event(List<Rs...>) {
  return {std::is_same_v<typename Rs::Event, E>...};
}

template <const auto& M, class E>
inline constexpr auto event_rows = rows_of_event<E>(typename MachineOf<M>::Rows{});

template <const auto& M, class E>
consteval auto make_cells() {
  static_assert(MachineOf<M>::kRows < kNone, "a machine has at most 254 transitions");
  std::array<Cell, state_slots<M>> cells{};
  for (std::size_t row = M.rows.size(); row-- > 0;) {
    if (!event_rows<M, E>[row]) continue;
    for (std::size_t state = 0; state < cells.size(); ++state) {
      if (!M.rows[row].from.contains(static_cast<StateOf<M>>(state))) continue;
      const auto target = M.rows[row].internal ? state : static_cast<std::size_t>(M.rows[row].to);
      cells[state] = {static_cast<std::uint8_t>(row), static_cast<std::uint8_t>(target)};
    }
  }
  return cells;
}

template <const auto& M, class E>
inline constexpr auto cells = make_cells<M, E>();

template <const auto& M, class E>
consteval bool any_row(bool RowInfo<StateOf<M>>::* property) {
  for (std::size_t row = 0; row < M.rows.size(); ++row) {
    if (event_rows<M, E>[row] && M.rows[row].*property) return true;
  }
  return false;
}

/// The next row behind `row` that E may take out of `state`, or kNone.
template <const auto& M, class E>
consteval std::uint8_t row_behind(std::size_t state, std::size_t row) {
  for (++row; row < M.rows.size(); ++row) {
    if (event_rows<M, E>[row] && M.rows[row].from.contains(static_cast<StateOf<M>>(state))) {
      return static_cast<std::uint8_t>(row);
    }
  }
  return kNone;
}

/// Runs one row: its guard, its update, its target. False where the guard refuses.
template <const auto& M, class R, std::size_t I, class E>
constexpr bool run_row(StateOf<M>& state, DataOf<M>& data, const E& event, Effects* effects) {
  if (!allows<typename R::Guard>(std::as_const(data), event)) return false;
  update<typename R::Update>(data, event, effects);
  if constexpr (!M.rows[I].internal) state = M.rows[I].to;
  return true;
}

/// Finds the type of a row by its number without walking the list: one base class per row.
template <std::size_t I, class R>
struct NumberedRow {
  using Type = R;
};
template <class Numbers, class... Rs>
struct NumberedRows;
template <std::size_t... I, class... Rs>
struct NumberedRows<std::index_sequence<I...>, Rs...> : NumberedRow<I, Rs>... {};

template <class... Rs>
auto number_rows(List<Rs...>) -> NumberedRows<std::index_sequence_for<Rs...>, Rs...>;
template <std::size_t I, class R>
auto numbered(const NumberedRow<I, R>&) -> NumberedRow<I, R>;

template <const auto& M, std::size_t I>
using RowAt = typename decltype(numbered<I>(number_rows(std::declval<typename MachineOf<M>::Rows>())))::Type;

/// The states that accept E, ascending.
template <const auto& M, class E>
consteval auto make_sources() {
  constexpr auto accepts = [](Cell cell) { return cell.row != kNone; };
  std::array<std::size_t, static_cast<std::size_t>(std::ranges::count_if(cells<M, E>, accepts))> states{};
  std::size_t next = 0;
  for (std::size_t state = 0; state < cells<M, E>.size(); ++state) {
    if (accepts(cells<M, E>[state])) states[next++] = state;
  }
  return states;
}
template <const auto& M, class E>
inline constexpr auto sources = make_sources<M, E>();

/// Tries the rows that lead out of `Source`, from row `I` on, until one fires; without a guard it does.
template <const auto& M, std::size_t Source, std::size_t I, class E>
constexpr bool run_rows(StateOf<M>& state, DataOf<M>& data, const E& event, Effects* effects) {
  if (run_row<M, RowAt<M, I>, I>(state, data, event, effects)) return true;
  if constexpr (M.rows[I].guarded) {
    constexpr auto next = row_behind<M, E>(Source, I);
    if constexpr (next != kNone) return run_rows<M, Source, next>(state, data, event, effects);
  }
  return false;
}

/// One comparison per accepting state, which compilers turn into a switch; each case holds its own rows.
template <const auto& M, class E, std::size_t... K>
constexpr Verdict run_source(StateOf<M>& state, DataOf<M>& data, const E& event, Effects* effects,
                             std::index_sequence<K...>) {
  const auto now = static_cast<std::size_t>(state);
  auto verdict = Verdict::illegal;
  auto attempt = [&]<std::size_t Source>() {
    if (now != Source) return false;
    const bool fired = run_rows<M, Source, cells<M, E>[Source].row>(state, data, event, effects);
    verdict = fired ? Verdict::fired : Verdict::guarded;
    return true;
  };
  (void)(attempt.template operator()<sources<M, E>[K]>() || ...);
  return verdict;
}

template <const auto& M, class E>
inline constexpr bool event_wants_effects = []<class... Rs>(List<Rs...>) {
  return ((std::is_same_v<typename Rs::Event, E> && wants_effects<typename Rs::Update, DataOf<M>, E>) || ...);
}(typename MachineOf<M>::Rows{});

template <const auto& M, class E>
constexpr Verdict fire(StateOf<M>& state, DataOf<M>& data, const E& event, Effects* effects) {
  static_assert(verified<M>);
  static_assert(knows_event<M, E>, "no transition of this machine takes an event of this type");
  using Info = RowInfo<StateOf<M>>;
  if constexpr (any_row<M, E>(&Info::guarded) || any_row<M, E>(&Info::updates)) {
    return run_source<M>(state, data, event, effects, std::make_index_sequence<sources<M, E>.size()>{});
  } else {
    // Nothing to decide and nothing to run: the table alone says what happens.
    const auto index = static_cast<std::size_t>(state);
    if (index >= state_slots<M> || cells<M, E>[index].row == kNone) return Verdict::illegal;
    state = static_cast<StateOf<M>>(cells<M, E>[index].target);
    return Verdict::fired;
  }
}

}  // namespace detail

/// Fires `event`: on `fired` the state and the data are changed, otherwise neither is.
template <const auto& M, class E>
constexpr Verdict fire(StateOf<M>& state, DataOf<M>& data, const E& event) {
  static_assert(!detail::event_wants_effects<M, E>,
                "an update of this event takes Effects: fire it through an engine, or give it some");
  return detail::fire<M>(state, data, event, nullptr);
}

/// The same where updates may set timers, send messages and ask for work: they are collected in `effects`.
template <const auto& M, class E>
constexpr Verdict fire(StateOf<M>& state, DataOf<M>& data, const E& event, Effects& effects) {
  return detail::fire<M>(state, data, event, &effects);
}

/// Names of events, at most N.
template <std::size_t N>
struct EventNames {
  std::array<std::string_view, N> items{};
  std::size_t size = 0;
  constexpr const std::string_view* begin() const { return items.data(); }
  constexpr const std::string_view* end() const { return items.data() + size; }
};

/// The stored names of the events that a state accepts, guards aside, in the order of the table.
template <const auto& M>
constexpr auto legal_events(StateOf<M> state) {
  constexpr auto names = detail::event_names<M>();
  constexpr auto row_names = detail::row_event_names<M>();
  EventNames<names.size()> legal;
  for (const auto name : names) {
    for (std::size_t row = 0; row < row_names.size(); ++row) {
      if (row_names[row] != name || !M.rows[row].from.contains(state)) continue;
      legal.items[legal.size++] = name;
      break;
    }
  }
  return legal;
}

template <const auto& M>
constexpr bool is_terminal(StateOf<M> state) {
  return M.traits.terminal.contains(state);
}

/// One instance in memory, without a store. Not thread-safe. If an update throws, the data is as it left it.
template <const auto& M>
class Local {
 public:
  using State = StateOf<M>;
  using Data = DataOf<M>;

  constexpr Local() = default;
  constexpr explicit Local(Data data, State state = M.traits.initial.items[0])
      : state_(state), data_(std::move(data)) {}

  constexpr State state() const { return state_; }
  constexpr const Data& data() const { return data_; }
  constexpr bool finished() const { return is_terminal<M>(state_); }

  /// Errors: `illegal_event`, `guard_refused`, `finished_instance`; nothing has changed then.
  template <class E>
  Result<void> send(const E& event) {
    const auto verdict = fire<M>(state_, data_, event);
    if (verdict == Verdict::fired) return {};
    const auto legal = legal_events<M>(state_);
    return fail(refusal(verdict, {.machine = M.traits.name,
                                  .key = {},
                                  .state = state_name<M>(state_),
                                  .finished = finished(),
                                  .event = event_name<M, E>(),
                                  .legal = legal}));
  }

 private:
  State state_ = M.traits.initial.items[0];
  Data data_{};
};

}  // namespace pawl
