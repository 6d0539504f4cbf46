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

/// What `escape_id` was given, or nothing where it did not make this.
std::optional<std::string> unescape_id(std::string_view text);

/// The escaped id, or where that is too long for a file a '+' and its SHA-256, which has to be read back from
/// elsewhere. Error: `invalid_argument` for an id that is empty or has more than 1024 bytes.
Result<std::string> directory_name(std::string_view id);

/// Whether it was made from an id that is too long.
bool is_hashed(std::string_view directory_name);

}  // namespace pawl::workers
