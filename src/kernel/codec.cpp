// SPDX-License-Identifier: Apache-2.0
#include "pawl/codec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernel/suggestion.hpp"
#include "kernel/utf8.hpp"

namespace pawl {

bool DecodeFailure::refuse(std::string_view expected, const JsonValue& got) {
  return refuse(Code::wrong_type, fmt::format("expected {}, got {}", expected, got.kind_name()));
}

bool DecodeFailure::refuse(Code why, std::string text) {
  code = why;
  message = std::move(text);
  return false;
}

bool DecodeFailure::in_field(std::string_view name) {
  path = fmt::format(".{}{}", shown(name), path);
  return false;
}

bool DecodeFailure::in_element(std::size_t index) {
  path = fmt::format("[{}]{}", index, path);
  return false;
}

bool DecodeFailure::check_fields(const JsonValue& in, std::span<const std::string_view> known) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto name = in.key_at(i);
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    refuse(Code::unknown_name, fmt::format("there is no such field{}", suggestion(name, names)));
    return in_field(name.substr(0, 64));
  }
  return true;
}

Error DecodeFailure::to_error() const {
  return {code, fmt::format("${}: {}", path, message), {{"path", "$" + path}}};
}

namespace detail {

bool read_integer(JsonValue in, std::int64_t low, std::int64_t high, std::int64_t& out, DecodeFailure& why) {
  if (in.kind() != JsonKind::integer) return why.refuse("integer", in);
  const auto value = in.as_integer();
  if (!value || *value < low || *value > high) {
    return why.refuse(Code::wrong_type, fmt::format("expected integer from {} to {}", low, high));
  }
  out = *value;
  return true;
}

bool read_unsigned(JsonValue in, std::uint64_t high, std::uint64_t& out, DecodeFailure& why) {
  if (in.kind() != JsonKind::integer) return why.refuse("integer", in);
  const auto value = in.as_unsigned();
  if (!value || *value > high)
    return why.refuse(Code::wrong_type, fmt::format("expected integer from 0 to {}", high));
  out = *value;
  return true;
}

bool read_number(JsonValue in, double most, double& out, DecodeFailure& why) {
  if (in.kind() != JsonKind::number && in.kind() != JsonKind::integer) return why.refuse("number", in);
  const auto value = in.as_number();
  if (!value || std::abs(*value) > most) {
    return why.refuse(Code::wrong_type, fmt::format("expected number from {} to {}", -most, most));
  }
  out = *value;
  return true;
}

bool refuse_enum(JsonValue in, const std::string_view* names, std::size_t count, DecodeFailure& why) {
  const auto text = in.as_string();
  const auto got = text ? fmt::format("\"{}\"", shown(*text)) : std::string(in.kind_name());
  return why.refuse(Code::wrong_type,
                    fmt::format("expected one of {}, got {}", fmt::join(std::span(names, count), ", "), got));
}

}  // namespace detail

bool Codec<Json>::read(JsonValue in, Json& out, DecodeFailure&) {
  out.text = in.to_text();
  return true;
}

bool Codec<Time>::read(JsonValue in, Time& out, DecodeFailure& why) {
  const auto text = in.as_string();
  const auto time = text ? parse_time(*text) : fail(Code::wrong_type, "");
  if (!time) return why.refuse("time such as \"2026-01-31T12:00:00Z\"", in);
  out = *time;
  return true;
}

bool Codec<Duration>::read(JsonValue in, Duration& out, DecodeFailure& why) {
  const auto text = in.as_string();
  const auto duration = text ? parse_duration(*text) : fail(Code::wrong_type, "");
  if (!duration) return why.refuse("duration such as \"1.5s\" or \"20m\"", in);
  out = *duration;
  return true;
}

}  // namespace pawl
