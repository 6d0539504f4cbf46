// SPDX-License-Identifier: Apache-2.0
#include "pawl/definition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel/utf8.hpp"

namespace pawl {
namespace {

/// Finds an entry by its present name or one it had before.
template <class Entry>
Result<std::size_t> find_named(const std::vector<Entry>& entries, std::string_view wanted, Code code,
                               std::string_view machine, std::string_view noun) {
  const auto found = std::ranges::find_if(entries, [&](const Entry& entry) {
    return entry.name == wanted || std::ranges::find(entry.former_names, wanted) != entry.former_names.end();
  });
  if (found != entries.end()) return static_cast<std::size_t>(found - entries.begin());
  std::vector<std::string_view> known;
  for (const auto& entry : entries) known.push_back(entry.name);
  return fail(
      code,
      fmt::format("{} has no {} \"{}\"; known: {}", machine, noun, shown(wanted), fmt::join(known, ", ")),
      {{"machine", std::string(machine)}, {std::string(noun), shown(wanted)}});
}

}  // namespace

Result<std::size_t> Definition::find_state(std::string_view stored_name) const {
  return find_named(states, stored_name, Code::unknown_state, name, "state");
}

Result<std::size_t> Definition::find_event(std::string_view stored_name) const {
  return find_named(events, stored_name, Code::unknown_event, name, "event");
}

std::vector<std::string_view> Definition::legal_events(std::size_t state) const {
  std::vector<std::string_view> legal;
  for (std::size_t event = 0; event < events.size(); ++event) {
    const bool accepted = std::ranges::any_of(
        transitions, [&](const Transition& row) { return row.from == state && row.event == event; });
    if (accepted) legal.push_back(events[event].name);
  }
  return legal;
}

Error Definition::refuse(Verdict verdict, std::string_view key, std::size_t state, std::size_t event) const {
  const auto legal = legal_events(state);
  return refusal(verdict, {.machine = name,
                           .key = key,
                           .state = states[state].name,
                           .finished = states[state].terminal,
                           .event = events[event].name,
                           .legal = legal});
}

Result<std::string> Definition::upgrade(std::string data, int from_schema) const {
  if (from_schema < 1 || from_schema > schema) {
    return fail(Code::unsupported_schema,
                fmt::format("{}: data has schema {}, this program reads 1 to {}", name, from_schema, schema),
                {{"machine", name}, {"schema", std::to_string(from_schema)}});
  }
  for (int at = from_schema; at < schema; ++at) {
    PAWL_TRY(data, upgrades[static_cast<std::size_t>(at - 1)](data));
  }
  return data;
}

}  // namespace pawl
