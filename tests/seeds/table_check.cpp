// SPDX-License-Identifier: Apache-2.0
#include "tests/seeds/table_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace seeds {
namespace {

std::vector<std::string> sorted_words(std::string_view comma_separated) {
  std::vector<std::string> words;
  while (!comma_separated.empty()) {
    const auto end = std::min(comma_separated.find(", "), comma_separated.size());
    words.emplace_back(comma_separated.substr(0, end));
    comma_separated.remove_prefix(std::min(end + 2, comma_separated.size()));
  }
  std::ranges::sort(words);
  return words;
}

void judge_refusal(const Table& table, const Attempt& attempt, const std::string& pair, Differences& found) {
  const auto right =
      table.is_terminal(attempt.from) ? pawl::Code::finished_instance : pawl::Code::illegal_event;
  if (attempt.error->code() != right) {
    found.push_back(
        fmt::format("{} is refused with {}, not with {}", pair, name(attempt.error->code()), name(right)));
  }
  if (sorted_words(attempt.error->field("legal")) != table.accepted_in(attempt.from)) {
    found.push_back(fmt::format("{}: the error calls legal: {}; the table: {}", pair,
                                attempt.error->field("legal"),
                                fmt::join(table.accepted_in(attempt.from), ", ")));
  }
  if (attempt.to != attempt.from) {
    found.push_back(fmt::format("{} is refused but moves to {}", pair, attempt.to));
  }
  if (attempt.data_changed) found.push_back(fmt::format("{} is refused but changes the data", pair));
}

/// The names of one kind that the definition has and the table does not use, or the other way round.
void compare_names(std::string_view noun, const std::set<std::string>& defined,
                   const std::set<std::string>& written, Differences& found) {
  for (const auto& name : defined) {
    if (!written.contains(name)) found.push_back(fmt::format("the table has no {} {}", noun, name));
  }
  for (const auto& name : written) {
    if (!defined.contains(name)) found.push_back(fmt::format("the machine has no {} {}", noun, name));
  }
}

}  // namespace

const Move* Table::find(std::string_view from, std::string_view event) const {
  const auto move =
      std::ranges::find_if(legal, [&](const Move& row) { return row.from == from && row.event == event; });
  return move == legal.end() ? nullptr : &*move;
}

bool Table::is_terminal(std::string_view state) const {
  return std::ranges::find(terminal, state) != terminal.end();
}

std::vector<std::string> Table::accepted_in(std::string_view state) const {
  std::vector<std::string> events;
  for (const auto& move : legal) {
    if (move.from == state) events.push_back(move.event);
  }
  std::ranges::sort(events);
  return events;
}

void judge(const Table& table, const Attempt& attempt, Differences& found) {
  const auto pair = fmt::format("{}: {} + {}", attempt.way, attempt.from, attempt.event);
  const auto* expected = table.find(attempt.from, attempt.event);
  if (expected == nullptr && !attempt.error) {
    found.push_back(fmt::format("{} leads to {}, but is not in the table", pair, attempt.to));
  } else if (expected == nullptr) {
    judge_refusal(table, attempt, pair, found);
  } else if (attempt.error) {
    found.push_back(
        fmt::format("{} is refused, but leads to {}: {}", pair, expected->to, attempt.error->message()));
  } else if (attempt.to != expected->to) {
    found.push_back(fmt::format("{} leads to {}, not to {}", pair, attempt.to, expected->to));
  }
}

void compare_shape(const Table& table, const pawl::Definition& definition, Differences& found) {
  std::set<std::string> states{table.initial};
  std::set<std::string> events;
  for (const auto& move : table.legal) {
    states.insert({move.from, move.to});
    events.insert(move.event);
  }
  std::set<std::string> defined_states;
  for (const auto& state : definition.states) {
    defined_states.insert(state.name);
    if (state.terminal != table.is_terminal(state.name)) {
      found.push_back(
          fmt::format("{} is {}final, the table says otherwise", state.name, state.terminal ? "" : "not "));
    }
    const auto recovery = table.recovery.find(state.name);
    const auto right = recovery == table.recovery.end() ? state.name : recovery->second;
    const auto& actual =
        definition.states[state.recovers_to.value_or(definition.find_state(state.name).value())];
    if (actual.name != right) {
      found.push_back(fmt::format("{} recovers to {}, not to {}", state.name, actual.name, right));
    }
  }
  std::set<std::string> defined_events;
  for (const auto& event : definition.events) defined_events.insert(event.name);
  compare_names("state", defined_states, states, found);
  compare_names("event", defined_events, events, found);
  if (definition.states[definition.initial].name != table.initial) {
    found.push_back(
        fmt::format("begins in {}, not in {}", definition.states[definition.initial].name, table.initial));
  }
  if (definition.transitions.size() != table.legal.size()) {
    found.push_back(
        fmt::format("has {} transitions, the table {}", definition.transitions.size(), table.legal.size()));
  }
}

void compare_run_time(const Table& table, const pawl::Definition& definition, Differences& found) {
  for (const auto& from : definition.states) {
    for (const auto& by : definition.events) {
      const auto state = definition.find_state(from.name).value();
      const auto event = definition.find_event(by.name).value();
      const auto step = definition.events[event].fire_json(state, {"{}"}, "{}", nullptr);
      if (!step) {
        found.push_back(fmt::format("run time: {} + {}: {}", from.name, by.name, step.error().message()));
        continue;
      }
      const bool fired = step->verdict == pawl::Verdict::fired;
      judge(
          table,
          {.way = "run time",
           .from = from.name,
           .event = by.name,
           .error = fired ? std::nullopt : std::optional(definition.refuse(step->verdict, "k", state, event)),
           .to = definition.states[step->state].name,
           .data_changed = !fired && !step->data.empty()},
          found);
    }
  }
}

}  // namespace seeds
