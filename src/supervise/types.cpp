// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pawl/worker_types.hpp"

namespace pawl {

Result<std::size_t> WorkerType::find_state(std::string_view text) const {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (detail::same_letters(states[i].name, text)) return i;
    known.push_back(states[i].name);
  }
  const auto near = nearest_name(text, known);
  return fail(Code::spec_invalid, fmt::format("a worker of type \"{}\" has no state \"{}\"; it has {}{}",
                                              name, text.substr(0, 64), fmt::join(known, ", "),
                                              near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

WorkerTypes& WorkerTypes::add(WorkerType type) {
  auto name = type.name;
  const auto [place, added] =
      types_.emplace(std::move(name), std::make_shared<const WorkerType>(std::move(type)));
  if (!added)
    problems_.emplace_back(Code::duplicate_machine,
                           fmt::format("two worker types are called \"{}\"", place->first));
  return *this;
}

Result<void> WorkerTypes::validate() const {
  if (!problems_.empty()) return fail(problems_.front());
  return {};
}

Result<std::shared_ptr<const WorkerType>> WorkerTypes::find(std::string_view name) const {
  if (const auto found = types_.find(name); found != types_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [type, _] : types_) known.push_back(type);
  const auto near = nearest_name(name, known);
  return fail(Code::unknown_worker_type,
              fmt::format("no worker type \"{}\"; known: {}{}", name.substr(0, 64), fmt::join(known, ", "),
                          near.empty() ? "" : fmt::format("; did you mean {}?", near)),
              {{"type", std::string(name.substr(0, 64))}, {"nearest", near}});
}

std::vector<std::shared_ptr<const WorkerType>> WorkerTypes::all() const {
  std::vector<std::shared_ptr<const WorkerType>> found;
  found.reserve(types_.size());
  for (const auto& [_, type] : types_) found.push_back(type);
  return found;
}

}  // namespace pawl
