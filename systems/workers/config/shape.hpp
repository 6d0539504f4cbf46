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

/// A value in a file and its path.
struct ConfigPart {
  JsonValue value;
  std::string path;
};

using ConfigMembers = std::map<std::string, ConfigPart, std::less<>>;

/// Describes a value for "got …": `the integer 5`, `a list`.
std::string describe_value(JsonValue value);

void refuse_value(ConfigProblems& problems, const ConfigPart& part, std::string expected,
                  std::string suggestion = {});

/// The members of a mapping. Unknown keys are mistakes; keys without a value count as absent. Empty if the
/// value is not a mapping, which is a mistake.
std::optional<ConfigMembers> read_members(ConfigProblems& problems, const ConfigPart& part,
                                          const std::vector<std::string>& known);

/// The members of a mapping that may have any keys.
ConfigMembers read_entries(ConfigProblems& problems, const ConfigPart& part, std::string_view expected);

/// A text; empty if the value is of another kind, which is a mistake.
std::optional<std::string> read_text(ConfigProblems& problems, const ConfigPart& part,
                                     std::string_view expected);

/// `{user: {…}, global: {…}}`.
Variables read_variables(ConfigProblems& problems, const ConfigPart& part);

/// A list of up to five levels.
Location read_location(ConfigProblems& problems, const ConfigPart& part);

/// Adds the path of the location to the user variables; `part` is the location in the file. It is a mistake
/// if the variable is also given in the file.
void set_location_path(ConfigProblems& problems, const ConfigPart& part, const Location& location,
                       Variables& variables);

}  // namespace pawl::workers
