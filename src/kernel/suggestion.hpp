// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl {

/// " (did you mean \"limit\"?)" where one of the known names is near, else nothing.
std::string suggestion(std::string_view given, const std::vector<std::string>& known);

}  // namespace pawl
