// SPDX-License-Identifier: Apache-2.0
#include "pawl/time.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace {

using namespace std::chrono_literals;
using pawl::Duration;
using pawl::parse_time;
using pawl::Time;
using pawl::to_string;

Time at(int year, unsigned month, unsigned day, Duration since_midnight = 0s) {
  return std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day)) +
         since_midnight;
}

const Time kFirst = at(1, 1, 1);
const Time kLast = at(9999, 12, 31, 24h - Duration(1));

rc::Gen<Time> any_time() {
  const auto low = kFirst.time_since_epoch().count();
  const auto high = kLast.time_since_epoch().count();
  // rapidcheck sizes ranges around zero; both ends and the epoch are the places where mistakes live.
  return rc::gen::map(
      rc::gen::oneOf(rc::gen::inRange(low, high + 1), rc::gen::inRange(low, low + 100'000'000),
                     rc::gen::inRange(high - 100'000'000, high + 1),
                     rc::gen::inRange<std::int64_t>(-100'000'000, 100'000'000)),
      [](std::int64_t micros) { return Time(Duration(micros)); });
}

TEST(Time, PrintsSixDigitsAndZ) {
  EXPECT_EQ(to_string(at(2026, 11, 15, 21h + 40min)), "2026-11-15T21:40:00.000000Z");
  EXPECT_EQ(to_string(at(2026, 1, 2, 3h + 4min + 5s + 6us)), "2026-01-02T03:04:05.000006Z");
}

TEST(Time, PrintsTimesBeforeTheEpoch) { EXPECT_EQ(to_string(Time(-1us)), "1969-12-31T23:59:59.999999Z"); }

TEST(Time, PrintsTheNearestTimeWhenOutsideTheYears0001To9999) {
  EXPECT_EQ(to_string(Time::min()), "0001-01-01T00:00:00.000000Z");
  EXPECT_EQ(to_string(Time::max()), "9999-12-31T23:59:59.999999Z");
}

TEST(Time, ParsesZeroToNineFractionDigitsAndCutsBelowTheMicrosecond) {
  EXPECT_EQ(parse_time("2026-11-15T21:40:00Z").value(), at(2026, 11, 15, 21h + 40min));
  EXPECT_EQ(parse_time("2026-11-15T21:40:00.5Z").value(), at(2026, 11, 15, 21h + 40min + 500ms));
  EXPECT_EQ(parse_time("2026-11-15T21:40:00.1234567Z").value(), at(2026, 11, 15, 21h + 40min + 123456us));
  EXPECT_EQ(parse_time("2026-11-15T21:40:00.000000999Z").value(), at(2026, 11, 15, 21h + 40min));
}

TEST(Time, AppliesTheOffset) {
  EXPECT_EQ(parse_time("2026-01-01T00:30:00+02:00").value(), at(2025, 12, 31, 22h + 30min));
  EXPECT_EQ(parse_time("2026-01-01T00:30:00-05:45").value(), at(2026, 1, 1, 6h + 15min));
  EXPECT_EQ(parse_time("2026-01-01T00:30:00-00:00").value(), at(2026, 1, 1, 30min));
}

TEST(Time, KnowsLeapYears) {
  EXPECT_TRUE(parse_time("2024-02-29T00:00:00Z"));
  EXPECT_TRUE(parse_time("2000-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_time("2026-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_time("1900-02-29T00:00:00Z"));
}

TEST(Time, AnErrorNamesTheTextTheReasonAndTheExpectedForm) {
  const auto result = parse_time("2026-13-01T00:00:00Z");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), pawl::Code::invalid_argument);
  EXPECT_EQ(result.error().message(),
            "\"2026-13-01T00:00:00Z\" is not a time: the month is out of range; "
            "expected RFC 3339, such as 2026-11-15T21:40:00.000000Z");
  EXPECT_EQ(result.error().field("text"), "2026-13-01T00:00:00Z");
}

TEST(Time, AnErrorShowsOnlyTheBeginningOfALongText) {
  const auto result = parse_time(std::string(100'000, '9'));
  ASSERT_FALSE(result);
  EXPECT_LT(result.error().message().size(), 200u);
}

struct BadTime {
  std::string text;
  std::string reason;
};

class RefusedTime : public testing::TestWithParam<BadTime> {};

TEST_P(RefusedTime, IsRefusedWithItsReason) {
  const auto result = parse_time(GetParam().text);
  ASSERT_FALSE(result) << to_string(*result);
  EXPECT_THAT(result.error().message(), testing::HasSubstr(": " + GetParam().reason + ";"));
}

INSTANTIATE_TEST_SUITE_P(
    Time, RefusedTime,
    testing::Values(BadTime{"", "the year is missing or not a number"},
                    BadTime{"now", "the year is missing or not a number"},
                    BadTime{"+026-11-15T21:40:00Z", "the year is missing or not a number"},
                    BadTime{"0000-11-15T21:40:00Z", "the year is out of range"},
                    BadTime{"2026/11/15T21:40:00Z", "- is missing"},
                    BadTime{"2026-00-15T21:40:00Z", "the month is out of range"},
                    BadTime{"2026-11-00T21:40:00Z", "the day is out of range"},
                    BadTime{"2026-11-31T21:40:00Z", "the day is not in that month"},
                    BadTime{"2026-11-15 21:40:00Z", "T is missing"},
                    BadTime{"2026-11-15t21:40:00Z", "T is missing"},
                    BadTime{"2026-11-15T24:00:00Z", "the hour is out of range"},
                    BadTime{"2026-11-15T21:60:00Z", "the minute is out of range"},
                    BadTime{"2026-11-15T21:40Z", ": is missing"},
                    BadTime{"2026-12-31T23:59:60Z", "the second is out of range"},
                    BadTime{"2026-11-15T21:40:00.Z", "the fraction has no digits"},
                    BadTime{"2026-11-15T21:40:00.0123456789Z", "the fraction has more than nine digits"},
                    BadTime{"2026-11-15T21:40:00", "the offset is neither Z nor a number such as +02:00"},
                    BadTime{"2026-11-15T21:40:00z", "the offset is neither Z nor a number such as +02:00"},
                    BadTime{"2026-11-15T21:40:00+24:00", "the offset's hour is out of range"},
                    BadTime{"2026-11-15T21:40:00+01:60", "the offset's minute is out of range"},
                    BadTime{"2026-11-15T21:40:00+0100", ": is missing"},
                    BadTime{"2026-11-15T21:40:00Z ", "the time is followed by something else"},
                    BadTime{"0001-01-01T00:00:00+00:01", "the time in UTC is outside the years 0001 to 9999"},
                    BadTime{"9999-12-31T23:59:59-00:01",
                            "the time in UTC is outside the years 0001 to 9999"}));

RC_GTEST_PROP(TimeProperty, ParsingWhatWasPrintedGivesTheSameTime, ()) {
  const Time time = *any_time();
  const auto parsed = parse_time(to_string(time));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == time);
}

RC_GTEST_PROP(TimeProperty, TextOrderIsTimeOrder, ()) {
  const Time a = *any_time();
  const Time b = *any_time();
  RC_ASSERT((a <=> b) == (to_string(a) <=> to_string(b)));
}

RC_GTEST_PROP(TimeProperty, AnyTextIsParsedOrRefused, (std::string text)) {
  const auto result = parse_time(text);
  RC_ASSERT((result.has_value() || result.error().code() == pawl::Code::invalid_argument));
}

}  // namespace
