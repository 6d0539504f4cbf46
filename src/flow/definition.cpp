// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pawl/flow.hpp"

namespace pawl {
namespace {

Result<void> check_name(std::string_view what, std::string_view name) {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kLongest && std::ranges::all_of(name, fits)) return {};
  return fail(Code::invalid_argument,
              fmt::format("\"{}\" cannot be the name of a {}: 1 to {} letters, digits, \"_\" and \"-\"",
                          name.substr(0, kLongest), what, kLongest));
}

}  // namespace

std::optional<std::size_t> FlowDefinition::find(std::string_view step) const {
  const auto place = std::ranges::find(steps, step, &StepDefinition::name);
  if (place != steps.end()) return static_cast<std::size_t>(place - steps.begin());
  const auto former = std::ranges::find(former_steps, step, &RenamedStep::name);
  return former == former_steps.end() || former->at == step ? std::nullopt : find(former->at);
}

Result<void> FlowDefinition::validate() const {
  const auto check = [&]() -> Result<void> {
    if (!problems.empty()) return fail(problems.front());
    PAWL_CHECK(check_name("flow", name));
    if (steps.empty() || steps.front().finalizer)
      return fail(Code::invalid_argument, "a flow has at least one step");
    std::set<std::string_view> names;
    for (const auto& step : steps) {
      PAWL_CHECK(check_name("step", step.name));
      if (!names.insert(step.name).second)
        return fail(Code::invalid_argument, fmt::format("two steps are called \"{}\"", step.name));
      PAWL_CHECK(pawl::validate(step.options.retry));
      if (step.options.timeout && *step.options.timeout <= Duration::zero())
        return fail(Code::invalid_argument,
                    fmt::format("the timeout of step \"{}\" is not positive", step.name));
      if (step.lease && *step.lease <= Duration::zero())
        return fail(Code::invalid_argument,
                    fmt::format("the lease of step \"{}\" is not positive", step.name));
    }
    for (const auto& former : former_steps) {
      PAWL_CHECK(check_name("step", former.name));
      if (!names.insert(former.name).second)
        return fail(Code::invalid_argument,
                    fmt::format("\"{}\" is a step, or is declared as a former one twice", former.name));
      if (std::ranges::find(steps, former.at, &StepDefinition::name) == steps.end())
        return fail(Code::invalid_argument,
                    fmt::format("runs at the former step \"{}\" go on at \"{}\", which "
                                "is no step",
                                former.name, former.at));
    }
    return {};
  };
  auto checked = check();
  if (!checked) return fail(std::move(checked).error().while_(fmt::format("flow \"{}\"", name)));
  return {};
}

}  // namespace pawl
