// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/worker_spec.hpp"
#include "supervise/scope.hpp"

namespace pawl {
namespace {

/// `prefix` is what a template writes in front of the name.
Result<void> check_variable(std::string_view kind, std::string_view prefix, const std::string& name,
                            const Json& value) {
  const auto key = std::string(prefix) + shown(name);
  const auto refuse = [&](std::string_view why) {
    return fail(Code::spec_invalid, fmt::format("the {} variable \"{}\" {}", kind, shown(name), why),
                {{"key", key}});
  };
  if (name.empty() || supervise::name_length(name) != name.size()) {
    return refuse(
        "has a name that no template can use; a name has letters, digits and '_', and no digit first");
  }
  if (const auto read = supervise::parse_value(value); !read) {
    return refuse(fmt::format("has a value that cannot be read as JSON: {}; a text stands in quotation marks",
                              read.error().message()));
  }
  return {};
}

}  // namespace

Variables inherit(const Variables& parent, const Variables& child) {
  Variables seen = child;
  // What is there already stays.
  seen.user.insert(parent.user.begin(), parent.user.end());
  seen.global.insert(parent.global.begin(), parent.global.end());
  return seen;
}

Result<void> validate(const Variables& variables) {
  for (const std::string_view reserved : {"global", "internal"}) {
    if (!variables.user.contains(std::string(reserved))) continue;
    return fail(
        Code::spec_invalid,
        fmt::format("a user variable cannot be called \"{0}\", because {{{{ .{0}.NAME }}}} means the {0} "
                    "variables; give it another name",
                    reserved),
        {{"key", std::string(reserved)}});
  }
  for (const auto& [name, value] : variables.user) PAWL_CHECK(check_variable("user", "", name, value));
  for (const auto& [name, value] : variables.global)
    PAWL_CHECK(check_variable("global", "global.", name, value));
  return {};
}

}  // namespace pawl
