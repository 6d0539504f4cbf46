// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/assert.hpp"
#include "pawl/definition.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/machines.hpp"

namespace pawl {

/// Small numbers for machines and states, including stored ones that this program does not know: these are
/// listed but not changed. Filled while opening; afterwards only read, so safe from any thread.
class Registry {
 public:
  static constexpr std::uint16_t kUnknown = 0x8000;  // from this number on there is no definition

  explicit Registry(Machines machines);

  /// The machine's number by its current name or a former one. Error: `unknown_machine`, with the known
  /// names.
  Result<std::uint16_t> find(std::string_view name) const;
  /// The same, but empty if there is no such machine.
  std::optional<std::uint16_t> number(std::string_view name) const;

  /// The numbers of stored names; unknown names get a number, too.
  std::uint16_t intern_machine(std::string_view stored_name);
  std::uint16_t intern_state(std::uint16_t machine, std::string_view stored_name);

  bool knows(std::uint16_t machine) const { return machine < kUnknown; }
  const Machines::Entry& entry(std::uint16_t machine) const {
    PAWL_ASSERT(machine < machines_.entries().size(), "only a known machine has a definition", machine);
    return machines_.entries()[machine];
  }
  const Definition& definition(std::uint16_t machine) const { return entry(machine).definition; }
  std::size_t size() const { return machines_.entries().size(); }

  std::string_view machine_name(std::uint16_t machine) const;
  std::string_view state_name(std::uint16_t machine, std::uint16_t state) const;
  bool finished(std::uint16_t machine, std::uint16_t state) const;

  /// The permit pools that the machines bring along, with their sizes.
  const std::map<std::string, std::uint32_t>& pools_of_machines() const { return machines_.pools(); }
  /// The permit pools whose queues instances may enter.
  const std::set<std::string, std::less<>>& pools() const { return pools_; }
  void add_pool(std::string name) { pools_.insert(std::move(name)); }

  /// The machine's oldest name, which stays when it is renamed.
  std::string_view origin(std::uint16_t machine) const;
  /// The id of (machine, key): a renamed machine keeps the ids it had under its oldest name.
  InstanceId id(std::uint16_t machine, std::string_view key) const;

 private:
  Machines machines_;
  std::map<std::string, std::uint16_t, std::less<>> by_name_;
  std::vector<std::string> unknown_machines_;
  std::vector<std::string> unknown_states_;
  std::set<std::string, std::less<>> pools_;
};

}  // namespace pawl
