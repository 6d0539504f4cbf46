// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads the data that the command sends.

#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::cli {

/// JSON from the argument itself, @FILE, or - for standard input. It must be an object; absent: {}. `what`
/// names it in errors.
Result<std::string> read_json(const std::string& given, std::string_view what);

}  // namespace pawl::cli
