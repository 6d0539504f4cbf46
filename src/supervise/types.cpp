// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "pawl/sim.hpp"
#include "pawl/worker_types.hpp"
#include "supervise/text.hpp"

namespace pawl {

Error detail::error_of_thrown(std::string_view worker, std::string_view function) {
  std::string what = "an object that is not a std::exception";
  try {
    throw;
  } catch (const sim::Crashed&) {
    throw;
  } catch (const std::exception& thrown) {
    what = supervise::as_utf8(thrown.what());
  } catch (...) {  // NOLINT(bugprone-empty-catch): it carries no text
  }
  return {Code::worker_threw,
          fmt::format("{}: {} threw: {}", worker, function, what),
          {{"function", std::string(function)}}};
}

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
  if (type.actions.size() > WorkerType::kActionsMax) {
    problems_.emplace_back(Code::spec_invalid,
                           fmt::format("the worker type \"{}\" has {} actions; at most {} are allowed",
                                       type.name, type.actions.size(), WorkerType::kActionsMax));
  }
  auto name = type.name;
  const auto [place, added] =
      types_.emplace(std::move(name), std::make_shared<const WorkerType>(std::move(type)));
  if (!added)
    problems_.emplace_back(Code::duplicate_machine,
                           fmt::format("two worker types are named \"{}\"", place->first));
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
