// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Compares a machine with a table that was written down independently of it: every pair of a state and an
/// event is tried, on the typed way and on the run-time way, and whatever differs is told in one sentence.
///
///     EXPECT_THAT(seeds::differences<door>({.initial = "closed", .terminal = {"locked"},
///                                           .legal = {{"closed", "Push", "open"}, …}}), IsEmpty());

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/definition.hpp"
#include "pawl/fire.hpp"
#include "pawl/row_machine.hpp"

namespace seeds {

struct Move {
  std::string from;
  std::string event;
  std::string to;
};

/// What a document says about a machine, by stored names. What is not in `legal` is to be refused.
struct Table {
  std::string initial;
  std::vector<std::string> terminal;
  std::vector<Move> legal;
  std::map<std::string, std::string> recovery{};  ///< what a state becomes when its owner restarts

  const Move* find(std::string_view from, std::string_view event) const;
  bool is_terminal(std::string_view state) const;
  /// The events that `state` accepts, sorted.
  std::vector<std::string> accepted_in(std::string_view state) const;
};

using Differences = std::vector<std::string>;

/// What became of one event in one state.
struct Attempt {
  std::string way;  ///< how it was fired, for the message
  std::string from;
  std::string event;
  std::optional<pawl::Error> error;
  std::string to;  ///< the state afterwards
  bool data_changed = false;
};

/// Adds what is wrong with the attempt.
void judge(const Table& table, const Attempt& attempt, Differences& found);

/// Initial and terminal states, recoveries, and the numbers of transitions, states and events.
void compare_shape(const Table& table, const pawl::Definition& definition, Differences& found);

/// Fires every event in every state with JSON, by stored names.
void compare_run_time(const Table& table, const pawl::Definition& definition, Differences& found);

template <const auto& M, class E>
void compare_typed(const Table& table, Differences& found) {
  for (const auto state : pawl::enum_values<pawl::StateOf<M>>) {
    pawl::Local<M> local({}, state);
    const auto before = pawl::encode(local.data()).value();
    const auto result = local.send(E{});
    judge(table,
          {.way = "typed",
           .from = std::string(pawl::state_name<M>(state)),
           .event = std::string(pawl::event_name<M, E>()),
           .error = result ? std::nullopt : std::optional(result.error()),
           .to = std::string(pawl::state_name<M>(local.state())),
           .data_changed = pawl::encode(local.data()).value() != before},
          found);
  }
}

/// Everything in which the machine and the table differ; empty where they agree.
template <const auto& M>
Differences differences(const Table& table) {
  Differences found;
  const auto definition = pawl::define<M>();
  compare_shape(table, definition, found);
  compare_run_time(table, definition, found);
  [&]<class... Es>(pawl::detail::List<Es...>) {
    (compare_typed<M, Es>(table, found), ...);
  }(typename pawl::MachineOf<M>::Events{});
  return found;
}

template <const auto& M, class E>
void compare_row(const Table& table, const pawl::RowMachine<M>& rows, Differences& found) {
  const auto event = std::string(pawl::event_name<M, E>());
  const auto sql = rows.template update<E>({1}).text;
  for (const auto state : pawl::enum_values<pawl::StateOf<M>>) {
    const auto name = std::string(pawl::state_name<M>(state));
    auto error = rows.template refusal<E>("row", name);
    // Where the state accepts the event, the only reason not to move is that the row has moved meanwhile.
    const bool accepts = error.code() == pawl::Code::version_conflict;
    const auto* legal = table.find(name, event);
    const bool writes_target = legal != nullptr && sql.contains(" = '" + legal->to + "' WHERE");
    judge(table,
          {.way = "row",
           .from = name,
           .event = event,
           .error = accepts ? std::nullopt : std::optional(std::move(error)),
           .to = accepts && writes_target ? legal->to : name},
          found);
  }
}

/// The same for a row machine whose events have one target each: what it refuses and which state it writes.
template <const auto& M>
Differences row_differences(const pawl::RowMachine<M>& rows, const Table& table) {
  Differences found;
  [&]<class... Es>(pawl::detail::List<Es...>) {
    (compare_row<M, Es>(table, rows, found), ...);
  }(typename pawl::MachineOf<M>::Events{});
  return found;
}

}  // namespace seeds
