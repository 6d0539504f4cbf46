// SPDX-License-Identifier: Apache-2.0
#include "pawl/assert.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace {

TEST(Assert, HoldingConditionsDoNothing) {
  int evaluated = 0;
  PAWL_ASSERT(++evaluated == 1, "the condition is evaluated once");
  EXPECT_EQ(evaluated, 1);
}

TEST(Assert, ValuesAreNotEvaluatedWhileTheConditionHolds) {
  int evaluated = 0;
  PAWL_ASSERT(evaluated == 0, "values cost nothing", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(AssertDeathTest, PrintsTheExpressionAndTheSentence) {
  const int balance = -1;
  EXPECT_DEATH(PAWL_ASSERT(balance >= 0, "no account is overdrawn"),
               R"(assertion failed: no account is overdrawn \(balance >= 0\))");
}

TEST(AssertDeathTest, PrintsTheValuesInTheirOrder) {
  const std::string key = "order/7";
  EXPECT_DEATH(PAWL_ASSERT(key.empty(), "the key is free", key, 42, -7L, true, std::string_view("open")),
               R"(\[order/7\] \[42\] \[-7\] \[true\] \[open\])");
}

TEST(AssertDeathTest, PrintsThePlace) {
  EXPECT_DEATH(PAWL_ASSERT(false, "unreachable"), R"(assert_test\.cpp:[0-9]+: .* in .*TestBody)");
}

TEST(AssertDeathTest, EndsTheProcessByAbort) {
  EXPECT_EXIT(PAWL_ASSERT(false, "unreachable"), testing::KilledBySignal(SIGABRT), "unreachable");
}

TEST(AssertDeathTest, IsAStatementThatFitsAnUnbracedElse) {
  const auto check = [](bool good) {
    if (good)
      PAWL_ASSERT(good, "the branch belongs to the if");
    else
      PAWL_ASSERT(good, "the branch belongs to the else");
  };
  check(true);
  EXPECT_DEATH(check(false), "the branch belongs to the else");
}

}  // namespace
