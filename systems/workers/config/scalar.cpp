// SPDX-License-Identifier: Apache-2.0
#include "workers/config/scalar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "kernel/utf8.hpp"

namespace pawl::workers {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text;
}

bool is_decimal(std::string_view text) {
  const auto digits = without_sign(text);
  return !digits.empty() && count_digits(digits) == digits.size();
}

/// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_fraction(std::string_view text) {
  auto rest = without_sign(text);
  const auto whole = count_digits(rest);
  rest.remove_prefix(whole);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const auto part = count_digits(rest);
    if (whole == 0 && part == 0) return false;
    rest.remove_prefix(part);
  } else if (whole == 0) {
    return false;
  }
  if (rest.empty()) return true;
  if (rest.front() != 'e' && rest.front() != 'E') return false;
  return is_decimal(rest.substr(1));
}

std::string beyond_64_bits(std::string_view text) {
  return fmt::format("the integer {} does not fit in 64 bits; put it in quotes if it is a text", shown(text));
}

std::string write_unsigned(JsonWriter& out, std::string_view text, std::string_view digits, int base) {
  std::uint64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec != std::errc()) {
    return beyond_64_bits(text);
  }
  out.integer(value);
  return {};
}

std::string write_decimal(JsonWriter& out, std::string_view text) {
  if (!text.starts_with('-')) return write_unsigned(out, text, without_sign(text), 10);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return beyond_64_bits(text);
  }
  out.integer(value);
  return {};
}

std::string write_fraction(JsonWriter& out, std::string_view text) {
  const auto digits = text.starts_with('+') ? text.substr(1) : text;
  double value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    return fmt::format("the number {} is beyond what can be computed with; put it in quotes if it is a text",
                       shown(text));
  }
  out.number(value);
  return {};
}

bool has_only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

std::string write_plain_scalar(JsonWriter& out, std::string_view text) {
  static constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 3> kTrue{"true", "True", "TRUE"};
  static constexpr std::array<std::string_view, 3> kFalse{"false", "False", "FALSE"};
  static constexpr std::array<std::string_view, 3> kInfinite{".inf", ".Inf", ".INF"};
  static constexpr std::array<std::string_view, 3> kNotANumber{".nan", ".NaN", ".NAN"};
  if (is_one_of(text, kNull)) {
    out.null();
  } else if (is_one_of(text, kTrue) || is_one_of(text, kFalse)) {
    out.boolean(is_one_of(text, kTrue));
  } else if (is_decimal(text)) {
    return write_decimal(out, text);
  } else if (text.starts_with("0o") && has_only(text.substr(2), "01234567")) {
    return write_unsigned(out, text, text.substr(2), 8);
  } else if (text.starts_with("0x") && has_only(text.substr(2), "0123456789abcdefABCDEF")) {
    return write_unsigned(out, text, text.substr(2), 16);
  } else if (is_fraction(text)) {
    return write_fraction(out, text);
  } else if (is_one_of(without_sign(text), kInfinite) || is_one_of(text, kNotANumber)) {
    return fmt::format("{} has no JSON form; put it in quotes if it is a text", text);
  } else {
    out.string(text);
  }
  return {};
}

}  // namespace pawl::workers
