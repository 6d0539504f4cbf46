// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pawl/assert.hpp"

namespace pawl {
namespace {

std::uint16_t intern(std::vector<std::string>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  const auto index = static_cast<std::size_t>(found - names.begin());
  if (found == names.end()) names.emplace_back(name);
  PAWL_ASSERT(index < Registry::kUnknown - 1, "fewer than 32767 unknown names are stored", index);
  return static_cast<std::uint16_t>(Registry::kUnknown + index);
}

}  // namespace

Registry::Registry(Machines machines) : machines_(std::move(machines)) {
  for (std::size_t i = 0; i < machines_.entries().size(); ++i) {
    const auto& definition = machines_.entries()[i].definition;
    by_name_.emplace(definition.name, static_cast<std::uint16_t>(i));
    for (const auto& former : definition.former_names)
      by_name_.emplace(former, static_cast<std::uint16_t>(i));
  }
}

std::optional<std::uint16_t> Registry::number(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? std::optional(found->second) : std::nullopt;
}

Result<std::uint16_t> Registry::find(std::string_view name) const {
  if (const auto found = number(name)) return *found;
  std::vector<std::string_view> known;
  for (const auto& entry : machines_.entries()) known.push_back(entry.definition.name);
  return fail(Code::unknown_machine,
              fmt::format("no machine \"{}\"; known: {}", name.substr(0, 64), fmt::join(known, ", ")),
              {{"machine", std::string(name.substr(0, 64))}});
}

std::uint16_t Registry::intern_machine(std::string_view stored_name) {
  const auto found = by_name_.find(stored_name);
  return found != by_name_.end() ? found->second : intern(unknown_machines_, stored_name);
}

std::uint16_t Registry::intern_state(std::uint16_t machine, std::string_view stored_name) {
  if (knows(machine)) {
    if (const auto state = definition(machine).find_state(stored_name))
      return static_cast<std::uint16_t>(*state);
  }
  return intern(unknown_states_, stored_name);
}

std::string_view Registry::machine_name(std::uint16_t machine) const {
  if (knows(machine)) return definition(machine).name;
  const std::size_t unknown = machine - kUnknown;
  PAWL_ASSERT(unknown < unknown_machines_.size(), "a number that was given out names a machine", machine);
  return unknown_machines_[unknown];
}

std::string_view Registry::state_name(std::uint16_t machine, std::uint16_t state) const {
  if (state < kUnknown) {
    const auto& states = definition(machine).states;
    PAWL_ASSERT(state < states.size(), "a state is one of its machine", machine, state);
    return states[state].name;
  }
  const std::size_t unknown = state - kUnknown;
  PAWL_ASSERT(unknown < unknown_states_.size(), "a number that was given out names a state", state);
  return unknown_states_[unknown];
}

bool Registry::finished(std::uint16_t machine, std::uint16_t state) const {
  if (!knows(machine) || state >= kUnknown) return false;
  const auto& states = definition(machine).states;
  PAWL_ASSERT(state < states.size(), "a state is one of its machine", machine, state);
  return states[state].terminal;
}

std::string_view Registry::origin(std::uint16_t machine) const {
  const auto& defined = definition(machine);
  return defined.former_names.empty() ? defined.name : defined.former_names.back();
}

InstanceId Registry::id(std::uint16_t machine, std::string_view key) const {
  return instance_id(origin(machine), key);
}

}  // namespace pawl
