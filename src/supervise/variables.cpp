// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/worker_spec.hpp"
#include "supervise/scope.hpp"

namespace pawl {
namespace {

/// `prefix` precedes the name in a template.
Result<void> check_variable(std::string_view kind, std::string_view prefix, const std::string& name,
                            const Json& value) {
  const auto key = std::string(prefix) + shown(name);
  const auto refuse = [&](std::string_view why) {
    return fail(Code::spec_invalid, fmt::format("the {} variable \"{}\" {}", kind, shown(name), why),
                {{"key", key}});
  };
  if (name.empty() || supervise::name_length(name) != name.size()) {
    return refuse(
        "has an invalid name; a name consists of letters, digits and '_' and does not start with a digit");
  }
  if (const auto read = supervise::parse_value(value); !read) {
    return refuse(fmt::format("has a value that is not JSON: {}; put quotation marks around a text",
                              read.error().message()));
  }
  return {};
}

}  // namespace

Variables inherit(const Variables& parent, const Variables& child) {
  Variables merged = child;
  // `insert` keeps existing values.
  merged.user.insert(parent.user.begin(), parent.user.end());
  merged.global.insert(parent.global.begin(), parent.global.end());
  return merged;
}

Result<void> validate(const Variables& variables) {
  for (const std::string_view reserved : {"global", "internal"}) {
    if (!variables.user.contains(std::string(reserved))) continue;
    return fail(
        Code::spec_invalid,
        fmt::format("a user variable cannot be named \"{0}\", because {{{{ .{0}.NAME }}}} means the {0} "
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
