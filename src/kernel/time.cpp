// SPDX-License-Identifier: Apache-2.0
#include "pawl/time.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/utf8.hpp"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

constexpr Time kEarliest = std::chrono::sys_days(std::chrono::year(1) / 1 / 1);
constexpr Time kLatest = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31) + 24h - Duration(1);

/// Reads a text from left to right; the first thing that does not fit leaves its reason.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Exactly `digits` decimal digits whose value lies in [low, high].
  int number(std::size_t digits, int low, int high, std::string_view what) {
    if (failed()) return low;
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (i >= rest_.size() || !is_digit(rest_[i])) return refuse(what, "is missing or not a number"), low;
      value = value * 10 + (rest_[i] - '0');
    }
    if (value < low || value > high) return refuse(what, "is out of range"), low;
    rest_.remove_prefix(digits);
    return value;
  }

  void literal(char expected) {
    if (!failed() && !skip(expected)) refuse(std::string_view(&expected, 1), "is missing");
  }

  bool skip(char expected) {
    if (failed() || !rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// One to nine digits after a point, as microseconds.
  Duration fraction() {
    std::int64_t nanos = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && is_digit(rest_[digits]); ++digits) {
      if (digits == 9) return refuse("the fraction", "has more than nine digits"), Duration(0);
      nanos = nanos * 10 + (rest_[digits] - '0');
    }
    if (digits == 0) return refuse("the fraction", "has no digits"), Duration(0);
    rest_.remove_prefix(digits);
    for (; digits < 9; ++digits) nanos *= 10;
    return Duration(nanos / 1000);
  }

  void end() {
    if (!failed() && !rest_.empty()) refuse("the time", "is followed by something else");
  }

  void refuse(std::string_view what, std::string_view why) {
    if (!failed()) reason_ = fmt::format("{} {}", what, why);
  }
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string_view rest_;
  std::string reason_;
};

Duration read_offset(Reader& in) {
  if (in.skip('Z')) return 0s;
  const bool east = in.skip('+');
  if (!east && !in.skip('-')) in.refuse("the offset", "is neither Z nor a number such as +02:00");
  const auto hours = std::chrono::hours(in.number(2, 0, 23, "the offset's hour"));
  in.literal(':');
  const auto minutes = std::chrono::minutes(in.number(2, 0, 59, "the offset's minute"));
  return east ? hours + minutes : -(hours + minutes);
}

Time read_time(Reader& in) {
  const auto year = std::chrono::year(in.number(4, 1, 9999, "the year"));
  in.literal('-');
  const auto month = std::chrono::month(static_cast<unsigned>(in.number(2, 1, 12, "the month")));
  in.literal('-');
  const auto day = std::chrono::day(static_cast<unsigned>(in.number(2, 1, 31, "the day")));
  if (!(year / month / day).ok()) in.refuse("the day", "is not in that month");
  in.literal('T');
  const auto hours = std::chrono::hours(in.number(2, 0, 23, "the hour"));
  in.literal(':');
  const auto minutes = std::chrono::minutes(in.number(2, 0, 59, "the minute"));
  in.literal(':');
  const auto seconds = std::chrono::seconds(in.number(2, 0, 59, "the second"));
  const Duration fraction = in.skip('.') ? in.fraction() : Duration(0);
  const Duration offset = read_offset(in);
  in.end();
  if (in.failed()) return {};
  const Time time = std::chrono::sys_days(year / month / day) + hours + minutes + seconds + fraction - offset;
  if (time < kEarliest || time > kLatest) in.refuse("the time in UTC", "is outside the years 0001 to 9999");
  return time;
}

}  // namespace

std::string to_string(Time time) {
  time = std::clamp(time, kEarliest, kLatest);
  const auto midnight = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss clock(time - midnight);
  // Every answer has several of these, so the digits are put in their places directly.
  std::string text = "0000-00-00T00:00:00.000000Z";
  const auto put = [&text](std::size_t end, std::int64_t number) {
    for (; number != 0; number /= 10) text[--end] = static_cast<char>('0' + number % 10);
  };
  put(4, static_cast<int>(date.year()));
  put(7, static_cast<unsigned>(date.month()));
  put(10, static_cast<unsigned>(date.day()));
  put(13, clock.hours().count());
  put(16, clock.minutes().count());
  put(19, clock.seconds().count());
  put(26, clock.subseconds().count());
  return text;
}

Result<Time> parse_time(std::string_view text) {
  Reader in(text);
  const Time time = read_time(in);
  if (!in.failed()) return time;
  return fail(Code::invalid_argument,
              fmt::format("\"{}\" is not a time: {}; expected RFC 3339, such as 2026-11-15T21:40:00.000000Z",
                          shown(text), in.reason()),
              {{"text", shown(text)}});
}

}  // namespace pawl
