// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "kernel/utf8.hpp"
#include "pawl/time.hpp"

namespace pawl {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t microseconds;
};
constexpr std::array<Unit, 6> kUnits{{{"us", 1},
                                      {"ms", 1'000},
                                      {"s", 1'000'000},
                                      {"m", 60'000'000},
                                      {"h", 3'600'000'000},
                                      {"d", 86'400'000'000}}};

std::unexpected<Error> refuse(std::string_view text) {
  return fail(
      Code::invalid_argument,
      fmt::format("'{}' is not a duration; expected a number and a unit (us, ms, s, m, h, d) such as 1.5s",
                  shown(text)),
      {{"text", shown(text)}});
}

bool all_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// whole * unit + 0.fraction * unit in microseconds; false on overflow or where it is finer than a
/// microsecond.
bool scale(std::int64_t whole, std::string_view fraction, std::int64_t unit, std::int64_t& out) {
  if (__builtin_mul_overflow(whole, unit, &out)) return false;
  for (const char digit : fraction) {
    if ((unit % 10 != 0 || unit == 0) && digit != '0') return false;
    unit /= 10;
    if (__builtin_add_overflow(out, unit * (digit - '0'), &out)) return false;
  }
  return true;
}

}  // namespace

std::string to_string(Duration duration) {
  const auto count = duration.count();
  const auto magnitude =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  const auto* sign = count < 0 ? "-" : "";
  const auto fraction = magnitude % 1'000'000;
  if (fraction == 0) return fmt::format("{}{}s", sign, magnitude / 1'000'000);
  auto digits = fmt::format("{:06}", fraction);
  digits.erase(digits.find_last_not_of('0') + 1);
  return fmt::format("{}{}.{}s", sign, magnitude / 1'000'000, digits);
}

Result<Duration> parse_duration(std::string_view text) {
  auto rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const auto unit_at = rest.find_first_not_of("0123456789.");
  if (unit_at == 0 || unit_at == std::string_view::npos) return refuse(text);
  const auto number = rest.substr(0, unit_at);
  const auto point = number.find('.');
  const auto whole_text = number.substr(0, point);
  const auto fraction = point == std::string_view::npos ? std::string_view{} : number.substr(point + 1);
  if (whole_text.empty() || !all_digits(fraction) || (point != std::string_view::npos && fraction.empty())) {
    return refuse(text);
  }
  std::int64_t whole = 0;
  if (std::from_chars(whole_text.data(), whole_text.data() + whole_text.size(), whole).ec != std::errc{}) {
    return refuse(text);
  }
  for (const auto& unit : kUnits) {
    if (rest.substr(unit_at) != unit.name) continue;
    std::int64_t count = 0;
    if (!scale(negative ? -whole : whole, "", unit.microseconds, count)) return refuse(text);
    std::int64_t part = 0;
    if (!scale(0, fraction, unit.microseconds, part)) return refuse(text);
    if (__builtin_add_overflow(count, negative ? -part : part, &count)) return refuse(text);
    return Duration(count);
  }
  return refuse(text);
}

}  // namespace pawl
