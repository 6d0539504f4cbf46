// SPDX-License-Identifier: Apache-2.0
#include "pawl/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace pawl {

std::string WorkContext::request_id() const {
  return fmt::format("{}/{}#{}", origin.empty() ? machine : origin, key, number);
}

Machines& Machines::add_work(std::string_view machine, std::string name, Work work) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.definition.name == machine; });
  if (found == entries_.end()) {
    problems_.emplace_back(Code::unknown_machine,
                           fmt::format("work \"{}\": add the machine \"{}\" first", name, machine));
    return *this;
  }
  if (const auto valid = pawl::validate(work.options.retry); !valid) {
    problems_.push_back(Error(valid.error()).while_(fmt::format("work \"{}\" of {}", name, machine)));
  }
  const auto [place, added] = found->works.emplace(std::move(name), std::move(work));
  if (!added) {
    problems_.emplace_back(Code::duplicate_machine,
                           fmt::format("{} has two handlers for work \"{}\"", machine, place->first));
  }
  return *this;
}

Result<void> Machines::validate() const {
  if (!problems_.empty()) return fail(problems_.front());
  std::set<std::string_view> names;
  for (const auto& entry : entries_) {
    std::vector<std::string_view> own{entry.definition.name};
    own.insert(own.end(), entry.definition.former_names.begin(), entry.definition.former_names.end());
    for (const auto name : own) {
      if (!names.insert(name).second) {
        return fail(Code::duplicate_machine, fmt::format("two machines are or were called \"{}\"", name),
                    {{"machine", std::string(name)}});
      }
    }
  }
  return {};
}

}  // namespace pawl
