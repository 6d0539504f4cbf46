// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Examples of what a supervisor does, played in virtual time: a minute takes no time.
///
///     play_scenario("failing", [](const std::string& line) { std::puts(line.c_str()); });
///     // 0.200s  flaky  go TryingToConnect: it is wanted

#include <functional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::workers {

/// Every move as it happens; true where it ended as expected. Error: `unknown_name`, with the known ones.
Result<bool> play_scenario(std::string_view name, const std::function<void(const std::string&)>& print);

/// "simple, failing, …"
std::string scenario_names();

}  // namespace pawl::workers
