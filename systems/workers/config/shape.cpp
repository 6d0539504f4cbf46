// SPDX-License-Identifier: Apache-2.0
#include "workers/config/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernel/utf8.hpp"
#include "workers/config/yaml.hpp"

namespace pawl::workers {
namespace {

constexpr std::string_view kLocationPath = "location_path";

/// Adds the variables of one kind. Checks each separately, so that all mistakes are found.
void read_variables_of(ConfigProblems& problems, const ConfigPart& part,
                       std::map<std::string, Json> Variables::* kind, Variables& variables) {
  for (const auto& [name, value] :
       read_entries(problems, part, "names with values, such as {IP: 10.0.0.7}")) {
    Variables one;
    (one.*kind)[name] = Json{value.value.to_text()};
    if (const auto valid = validate(one); !valid) {
      const bool reserved = name == "global" || name == "internal";
      problems.add({.key = value.path,
                    .problem = valid.error().message(),
                    .expected = reserved ? "a name other than global and internal"
                                         : "letters, digits and '_', and no digit first",
                    .actual = fmt::format("\"{}\"", shown(name)),
                    .suggestion = name == "global" ? "variables.global, beside variables.user" : ""});
    } else {
      (variables.*kind).merge(one.*kind);
    }
  }
}

}  // namespace

std::string describe_value(JsonValue value) {
  switch (value.kind()) {
    case JsonKind::null:
      return "nothing";
    case JsonKind::array:
      return "a list";
    case JsonKind::object:
      return "a mapping";
    case JsonKind::string:
      return fmt::format("the text \"{}\"", shown(*value.as_string()));
    case JsonKind::boolean:
      return value.to_text();
    case JsonKind::integer:
    case JsonKind::number:
      break;
  }
  return fmt::format("the {} {}", value.kind_name(), value.to_text());
}

void refuse_value(ConfigProblems& problems, const ConfigPart& part, std::string expected,
                  std::string suggestion) {
  problems.add({.key = part.path,
                .problem = "the value is of another kind",
                .expected = std::move(expected),
                .actual = describe_value(part.value),
                .suggestion = std::move(suggestion)});
}

std::optional<ConfigMembers> read_members(ConfigProblems& problems, const ConfigPart& part,
                                          const std::vector<std::string>& known) {
  if (part.value.kind() != JsonKind::object) {
    refuse_value(problems, part, fmt::format("a mapping with the keys {}", list_names(known)));
    return std::nullopt;
  }
  ConfigMembers members;
  for (std::size_t i = 0; i < part.value.size() && !problems.is_full(); ++i) {
    const std::string key(part.value.key_at(i));
    auto path = member_path(part.path, key);
    if (std::ranges::find(known, key) == known.end()) {
      problems.add({.key = std::move(path),
                    .problem = "there is no such key",
                    .expected = fmt::format("one of {}", list_names(known)),
                    .actual = fmt::format("\"{}\"", shown(key)),
                    .suggestion = nearest_name(key, known)});
    } else if (part.value.at(i).kind() != JsonKind::null) {
      members.emplace(key, ConfigPart{part.value.at(i), std::move(path)});
    }
  }
  return members;
}

ConfigMembers read_entries(ConfigProblems& problems, const ConfigPart& part, std::string_view expected) {
  ConfigMembers members;
  if (part.value.kind() != JsonKind::object) {
    refuse_value(problems, part, std::string(expected));
    return members;
  }
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const std::string key(part.value.key_at(i));
    members.emplace(key, ConfigPart{part.value.at(i), member_path(part.path, key)});
  }
  return members;
}

std::optional<std::string> read_text(ConfigProblems& problems, const ConfigPart& part,
                                     std::string_view expected) {
  if (const auto text = part.value.as_string()) return std::string(*text);
  const bool scalar = part.value.kind() != JsonKind::array && part.value.kind() != JsonKind::object &&
                      part.value.kind() != JsonKind::null;
  refuse_value(problems, part, std::string(expected),
               scalar ? fmt::format("\"{}\", in quotes", part.value.to_text()) : std::string());
  return std::nullopt;
}

Variables read_variables(ConfigProblems& problems, const ConfigPart& part) {
  Variables variables;
  const auto members = read_members(problems, part, {"user", "global"});
  if (!members) return variables;
  if (const auto user = members->find("user"); user != members->end()) {
    read_variables_of(problems, user->second, &Variables::user, variables);
  }
  if (const auto global = members->find("global"); global != members->end()) {
    read_variables_of(problems, global->second, &Variables::global, variables);
  }
  return variables;
}

Location read_location(ConfigProblems& problems, const ConfigPart& part) {
  constexpr std::string_view kExpected = "a list of up to five levels, such as [enterprise, site, area]";
  Location location;
  if (part.value.kind() != JsonKind::array) {
    refuse_value(problems, part, std::string(kExpected));
    return location;
  }
  if (part.value.size() > Location::kLevels) {
    problems.add({.key = part.path,
                  .problem = "the location has too many levels",
                  .expected = "at most five: enterprise, site, area, line, cell",
                  .actual = std::to_string(part.value.size())});
    return location;
  }
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const ConfigPart level{part.value.at(i), element_path(part.path, i)};
    const bool unknown = level.value.kind() == JsonKind::null;
    location.levels.push_back(unknown ? std::string()
                                      : read_text(problems, level, "the name of a level").value_or(""));
  }
  return location;
}

void set_location_path(ConfigProblems& problems, const ConfigPart& part, const Location& location,
                       Variables& variables) {
  const auto text = encode(location_path(location));
  if (!text) {
    problems.add({.key = part.path, .problem = text.error().message()});
  } else if (!variables.user.emplace(kLocationPath, Json{*text}).second) {
    problems.add({.key = part.path,
                  .problem = "the location gives the user variable location_path, which is given, too",
                  .expected = "one of the two"});
  }
}

}  // namespace pawl::workers
