// SPDX-License-Identifier: Apache-2.0
#include "pawl/error.hpp"

#include <gtest/gtest.h>

namespace {

using pawl::Code;
using pawl::Error;

pawl::Result<int> half(int n) {
  if (n % 2 != 0)
    return pawl::fail(Code::invalid_argument, "expected an even number", {{"n", std::to_string(n)}});
  return n / 2;
}

pawl::Result<int> quarter(int n) {
  PAWL_TRY(const int first, half(n));
  PAWL_TRY(const int second, half(first));
  return second;
}

pawl::Result<void> check_quarter(int n) {
  PAWL_CHECK(quarter(n));
  return {};
}

TEST(Error, TryPassesTheValueOn) { EXPECT_EQ(quarter(12).value(), 3); }

TEST(Error, TryReturnsTheFirstError) {
  const auto result = quarter(6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::invalid_argument);
  EXPECT_EQ(result.error().field("n"), "3");
}

TEST(Error, CheckReturnsTheErrorAndDropsTheValue) {
  EXPECT_TRUE(check_quarter(4));
  EXPECT_FALSE(check_quarter(3));
}

TEST(Error, PrintsNumberNameMessageAndFieldsInOneLine) {
  const auto error = Error(Code::illegal_event, "no", {{"state", "open"}}).with("event", "Push");
  EXPECT_EQ(error.to_string(), "PAWL-1001 illegal_event: no (state=open, event=Push)");
}

TEST(Error, ContextGoesInFrontOfTheMessage) {
  const auto error = Error(Code::malformed_json, "unexpected end").while_("while loading a.json");
  EXPECT_EQ(error.message(), "while loading a.json: unexpected end");
}

TEST(Error, AValueThatIsNotThereSaysWhy) {
  try {
    (void)half(5).value();
    FAIL() << "it threw nothing";
  } catch (const std::exception& thrown) {
    EXPECT_STREQ(thrown.what(), "PAWL-2001 invalid_argument: expected an even number (n=5)");
  }
  try {
    check_quarter(3).value();
    FAIL() << "it threw nothing";
  } catch (const std::bad_expected_access<Error>& thrown) {
    EXPECT_EQ(thrown.error().code(), Code::invalid_argument);
  }
}

TEST(ErrorDeathTest, AProgramThatEndsByAMissingValuePrintsTheError) {
  EXPECT_DEATH([]() noexcept { (void)half(5).value(); }(), "PAWL-2001 invalid_argument: expected an even");
}

TEST(Error, AnAbsentFieldIsEmpty) { EXPECT_EQ(Error(Code::cancelled, "x").field("y"), ""); }

}  // namespace
