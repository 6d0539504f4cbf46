// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "workers/types/reception.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

constexpr Time kStart{std::chrono::hours(490'000)};

Moment after(Duration passed) { return {.at = Instant(1h) + passed, .time = kStart + passed}; }

TEST(Reception, IsNotListeningBeforeItIsSubscribed) {
  Reception reception;
  reception.expect(1s);
  reception.message(after(0s));
  const auto seen = reception.look(after(1h));
  EXPECT_FALSE(seen.listening);
  EXPECT_FALSE(seen.receiving);
  EXPECT_EQ(seen.gaps, 0U);
}

TEST(Reception, CountsAGapOnceHoweverOftenItIsLookedAt) {
  Reception reception;
  reception.expect(10s);
  reception.subscribed(after(0s));
  reception.message(after(5s));
  EXPECT_TRUE(reception.look(after(15s)).receiving);
  for (const auto later : {16s, 20s, 30s}) {
    const auto seen = reception.look(after(later));
    EXPECT_FALSE(seen.receiving);
    EXPECT_EQ(seen.gaps, 1U);
    EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 5s}));
  }
  reception.message(after(31s));
  const auto seen = reception.look(after(32s));
  EXPECT_TRUE(seen.receiving);
  EXPECT_EQ(seen.gaps, 1U);
  EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 5s, .lasted = 26s}));
}

TEST(Reception, ReportsAGapThatNobodyLookedAt) {
  Reception reception;
  reception.expect(10s);
  reception.subscribed(after(0s));
  reception.message(after(5s));
  reception.message(after(16s));
  reception.message(after(17s));
  reception.message(after(40s));
  const auto seen = reception.look(after(41s));
  EXPECT_TRUE(seen.receiving);
  EXPECT_EQ(seen.gaps, 2U);
  EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 17s, .lasted = 23s}));
}

TEST(Reception, TakesTheTimeWithoutAConnectionAsAGap) {
  Reception reception;
  reception.expect(10s);
  reception.subscribed(after(0s));
  reception.message(after(1s));
  reception.subscribed(after(60s));  // again, after a loss
  const auto seen = reception.look(after(61s));
  EXPECT_EQ(seen.gaps, 1U);
  EXPECT_TRUE(seen.receiving);  // the first message has its time
  reception.message(after(62s));
  EXPECT_EQ(reception.look(after(62s)).last_gap, (Gap{.from = kStart + 1s, .lasted = 61s}));
}

TEST(Reception, TakesTheTimeInWhichNobodyWantedToListenForNoGap) {
  Reception reception;
  reception.expect(10s);
  reception.subscribed(after(0s));
  reception.message(after(1s));
  reception.end(after(2s));
  EXPECT_FALSE(reception.look(after(1h)).listening);
  reception.subscribed(after(1h));
  reception.message(after(1h + 1s));
  EXPECT_EQ(reception.look(after(1h + 2s)).gaps, 0U);
}

TEST(Reception, HasNoGapsWhereNothingIsExpected) {
  Reception reception;
  reception.subscribed(after(0s));
  reception.message(after(1s));
  EXPECT_TRUE(reception.look(after(2s)).receiving);
  reception.message(after(10h));
  EXPECT_EQ(reception.look(after(20h)).gaps, 0U);
}

TEST(Reception, SaysTheSameRateForTheSameTraffic) {
  Reception reception;
  reception.subscribed(after(0s));
  EXPECT_EQ(reception.look(after(0s)).rate, Rate::none);
  // Five per second, looked at each second.
  for (int tick = 1; tick <= 300; ++tick) {
    reception.message(after(tick * 200ms));
    if (tick % 5 == 0) {
      EXPECT_EQ(reception.look(after(tick * 200ms)).rate, Rate::below_10) << tick;
    }
  }
  EXPECT_EQ(reception.look(after(2min)).rate, Rate::below_1);
  EXPECT_EQ(reception.look(after(3min)).rate, Rate::none);
}

TEST(Reception, DoesNotTakeRareMessagesForNone) {
  Reception reception;
  reception.subscribed(after(0s));
  reception.message(after(1s));
  for (auto passed = 1s; passed < 10min; ++passed) {
    if (passed % 45s == 0s) reception.message(after(passed));
    EXPECT_EQ(reception.look(after(passed)).rate, Rate::below_1) << passed.count();
  }
}

TEST(Reception, FollowsAHighRate) {
  Reception reception;
  reception.subscribed(after(0s));
  for (int message = 0; message < 30'000; ++message) reception.message(after(message * 500us));
  EXPECT_EQ(reception.look(after(15s)).rate, Rate::more);
}

}  // namespace
}  // namespace pawl::test
