// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the command is given to send.

#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::cli {

/// JSON from the argument itself, @FILE, or - for standard input. It must be an object; nothing is {}.
/// `what` is what errors call it.
Result<std::string> read_json(const std::string& given, std::string_view what);

}  // namespace pawl::cli
