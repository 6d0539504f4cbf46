// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "workers/types/message_monitor.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

constexpr Time kStart{std::chrono::hours(490'000)};

Moment after(Duration passed) { return {.at = Instant(1h) + passed, .time = kStart + passed}; }

TEST(MessageMonitor, IsNotListeningBeforeItIsSubscribed) {
  MessageMonitor monitor;
  monitor.expect(1s);
  monitor.message(after(0s));
  const auto seen = monitor.stats(after(1h));
  EXPECT_FALSE(seen.listening);
  EXPECT_FALSE(seen.receiving);
  EXPECT_EQ(seen.gaps, 0U);
}

TEST(MessageMonitor, CountsAGapOnceHoweverOftenItIsLookedAt) {
  MessageMonitor monitor;
  monitor.expect(10s);
  monitor.subscribed(after(0s));
  monitor.message(after(5s));
  EXPECT_TRUE(monitor.stats(after(15s)).receiving);
  for (const auto later : {16s, 20s, 30s}) {
    const auto seen = monitor.stats(after(later));
    EXPECT_FALSE(seen.receiving);
    EXPECT_EQ(seen.gaps, 1U);
    EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 5s}));
  }
  monitor.message(after(31s));
  const auto seen = monitor.stats(after(32s));
  EXPECT_TRUE(seen.receiving);
  EXPECT_EQ(seen.gaps, 1U);
  EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 5s, .lasted = 26s}));
}

TEST(MessageMonitor, ReportsAGapThatNobodyLookedAt) {
  MessageMonitor monitor;
  monitor.expect(10s);
  monitor.subscribed(after(0s));
  monitor.message(after(5s));
  monitor.message(after(16s));
  monitor.message(after(17s));
  monitor.message(after(40s));
  const auto seen = monitor.stats(after(41s));
  EXPECT_TRUE(seen.receiving);
  EXPECT_EQ(seen.gaps, 2U);
  EXPECT_EQ(seen.last_gap, (Gap{.from = kStart + 17s, .lasted = 23s}));
}

TEST(MessageMonitor, TakesTheTimeWithoutAConnectionAsAGap) {
  MessageMonitor monitor;
  monitor.expect(10s);
  monitor.subscribed(after(0s));
  monitor.message(after(1s));
  monitor.subscribed(after(60s));  // again, after a loss
  const auto seen = monitor.stats(after(61s));
  EXPECT_EQ(seen.gaps, 1U);
  EXPECT_TRUE(seen.receiving);  // the first message has its time
  monitor.message(after(62s));
  EXPECT_EQ(monitor.stats(after(62s)).last_gap, (Gap{.from = kStart + 1s, .lasted = 61s}));
}

TEST(MessageMonitor, TakesTheTimeInWhichNobodyWantedToListenForNoGap) {
  MessageMonitor monitor;
  monitor.expect(10s);
  monitor.subscribed(after(0s));
  monitor.message(after(1s));
  monitor.end(after(2s));
  EXPECT_FALSE(monitor.stats(after(1h)).listening);
  monitor.subscribed(after(1h));
  monitor.message(after(1h + 1s));
  EXPECT_EQ(monitor.stats(after(1h + 2s)).gaps, 0U);
}

TEST(MessageMonitor, HasNoGapsWhereNothingIsExpected) {
  MessageMonitor monitor;
  monitor.subscribed(after(0s));
  monitor.message(after(1s));
  EXPECT_TRUE(monitor.stats(after(2s)).receiving);
  monitor.message(after(10h));
  EXPECT_EQ(monitor.stats(after(20h)).gaps, 0U);
}

TEST(MessageMonitor, SaysTheSameRateForTheSameTraffic) {
  MessageMonitor monitor;
  monitor.subscribed(after(0s));
  EXPECT_EQ(monitor.stats(after(0s)).rate, Rate::none);
  // Five per second, looked at each second.
  for (int tick = 1; tick <= 300; ++tick) {
    monitor.message(after(tick * 200ms));
    if (tick % 5 == 0) {
      EXPECT_EQ(monitor.stats(after(tick * 200ms)).rate, Rate::below_10) << tick;
    }
  }
  EXPECT_EQ(monitor.stats(after(2min)).rate, Rate::below_1);
  EXPECT_EQ(monitor.stats(after(3min)).rate, Rate::none);
}

TEST(MessageMonitor, DoesNotTakeRareMessagesForNone) {
  MessageMonitor monitor;
  monitor.subscribed(after(0s));
  monitor.message(after(1s));
  for (auto passed = 1s; passed < 10min; ++passed) {
    if (passed % 45s == 0s) monitor.message(after(passed));
    EXPECT_EQ(monitor.stats(after(passed)).rate, Rate::below_1) << passed.count();
  }
}

TEST(MessageMonitor, FollowsAHighRate) {
  MessageMonitor monitor;
  monitor.subscribed(after(0s));
  for (int message = 0; message < 30'000; ++message) monitor.message(after(message * 500us));
  EXPECT_EQ(monitor.stats(after(15s)).rate, Rate::more);
}

}  // namespace
}  // namespace pawl::test
