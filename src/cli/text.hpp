// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Text as a terminal shows it: nothing that steers it, columns instead of bytes, times as people say them.

#include <cstddef>
#include <string>
#include <string_view>

#include "pawl/json.hpp"
#include "pawl/time.hpp"

namespace pawl::cli {

/// The text with control characters, bytes that are no UTF-8 and marks that turn the direction of writing
/// shown as \xNN or \u{NNNN}: what is stored must not steer a terminal.
std::string printable(std::string_view text);

/// JSON text with the same characters as \\uNNNN; they stand in strings only, so the value is the same.
std::string inert_json(std::string_view json);

/// The width of a printable text in columns.
std::size_t columns(std::string_view text);

/// Cuts the text to at most this many columns; "…" marks the cut.
std::string clip(std::string_view text, std::size_t most);

/// "3s ago", "in 2h", "now": with the largest unit only, for lists.
std::string relative(Time time, Time now);

/// "2026-11-16T04:33:14Z": to the second, for tables.
std::string to_seconds(std::string_view time);

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t number);

/// JSON with a line per member, each behind `indent` blanks.
std::string pretty(JsonValue value, std::size_t indent);

}  // namespace pawl::cli
