// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/json.hpp"

namespace pawl::workers {

/// Writes a plain scalar as the core schema of YAML 1.2 reads it: null, boolean, integer, number or text.
/// Returns what is wrong with it, or nothing: a number that JSON or 64 bits cannot hold.
std::string write_plain_scalar(JsonWriter& out, std::string_view text);

}  // namespace pawl::workers
