// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of directories for workers, whose ids are paths: two ids never share one, and none leaves the
/// directory that it is in. Functions without state; thread-safe.

#include <optional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::workers {

/// "plant%2Fline-1%2Fpump": letters, digits, '_', '-' and '.' as they are, the latter not at the beginning.
std::string escape_id(std::string_view id);

/// The inverse of `escape_id`; empty for a text that it does not produce.
std::optional<std::string> unescape_id(std::string_view text);

/// The escaped id, or '+' and its SHA-256 if that is too long for a file name; then the id has to be stored
/// separately. Error: `invalid_argument` for an id that is empty or has more than 1024 bytes.
Result<std::string> directory_name(std::string_view id);

/// Whether the name is a hash.
bool is_hashed(std::string_view directory_name);

}  // namespace pawl::workers
