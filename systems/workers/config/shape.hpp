// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/json.hpp"
#include "pawl/worker_spec.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

/// A value of a file, and where it is.
struct ConfigPart {
  JsonValue value;
  std::string path;
};

using ConfigMembers = std::map<std::string, ConfigPart, std::less<>>;

/// What was written, for "got …": `the integer 5`, `a list`.
std::string describe_value(JsonValue value);

void refuse_value(ConfigProblems& problems, const ConfigPart& part, std::string expected,
                  std::string suggestion = {});

/// The members of a mapping, of which these are known; others are mistakes. One without a value counts as not
/// there. Nothing where it is no mapping, which is a mistake.
std::optional<ConfigMembers> read_members(ConfigProblems& problems, const ConfigPart& part,
                                          const std::vector<std::string>& known);

/// The members of a mapping that may have any keys.
ConfigMembers read_entries(ConfigProblems& problems, const ConfigPart& part, std::string_view expected);

/// A text; nothing where it is something else, which is a mistake.
std::optional<std::string> read_text(ConfigProblems& problems, const ConfigPart& part,
                                     std::string_view expected);

/// `{user: {…}, global: {…}}`.
Variables read_variables(ConfigProblems& problems, const ConfigPart& part);

/// A list of up to five levels.
Location read_location(ConfigProblems& problems, const ConfigPart& part);

/// Puts the path of the location among the user variables; `part` is where the location was written. Where
/// the variable was given by hand, that is a mistake.
void set_location_path(ConfigProblems& problems, const ConfigPart& part, const Location& location,
                       Variables& variables);

}  // namespace pawl::workers
