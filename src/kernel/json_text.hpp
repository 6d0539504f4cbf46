// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pawl/json.hpp"

namespace pawl {

/// Appends `text`, which is UTF-8, with quotes and escapes.
void append_json_string(std::string& out, std::string_view text);

/// Appends the shortest text that is read as the same number and not as an integer; for infinity, one that is
/// beyond all doubles too.
void append_json_number(std::string& out, double value);

/// Whether `JsonDocument::parse` would accept it; cheaper, because nothing is kept of it.
bool is_json(std::string_view text, JsonLimits limits);

}  // namespace pawl
