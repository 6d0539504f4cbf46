// SPDX-License-Identifier: Apache-2.0
// How full a pool is, and how fast something goes, in words.
#include "images/level.hpp"

#include <gtest/gtest.h>

#include "images/rate.hpp"

namespace pawl::images {
namespace {

using namespace std::chrono_literals;

constexpr double kFull = 0.95;

PoolUsage with_data(std::uint64_t used) { return {.bytes = 100, .used = used}; }
PoolUsage with_metadata(std::uint64_t used) {
  return {.bytes = 100, .used = 1, .metadata_bytes = 100, .metadata_used = used};
}

TEST(PoolAlarm, DataFillFromEightyPercentOnAndAreFullAboveTheLimit) {
  EXPECT_EQ(alarm(with_data(79), kFull), Alarm::none);
  EXPECT_EQ(alarm(with_data(80), kFull), Alarm::filling);
  EXPECT_EQ(alarm(with_data(95), kFull), Alarm::filling);
  EXPECT_EQ(alarm(with_data(96), kFull), Alarm::full);
}

TEST(PoolAlarm, MetadataCountLikeData) {
  EXPECT_EQ(alarm(with_metadata(79), kFull), Alarm::none);
  EXPECT_EQ(alarm(with_metadata(80), kFull), Alarm::filling);
  EXPECT_EQ(alarm(with_metadata(96), kFull), Alarm::full);
}

TEST(PoolAlarm, APoolThatSaysThatItIsFullIsFull) {
  EXPECT_EQ(alarm({.bytes = 100, .used = 1, .full = true}, kFull), Alarm::full);
}

TEST(PoolAlarm, APoolOfUnknownSizeRaisesNone) { EXPECT_EQ(alarm({}, kFull), Alarm::none); }

TEST(PoolAlarm, TheTextNamesTheMetadataWhereThereAreAny) {
  EXPECT_EQ(level_text(with_data(81)), "81 % of the data are used");
  EXPECT_EQ(level_text(with_metadata(12)), "1 % of the data and 12 % of the metadata are used");
}

TEST(Pace, SaysHowFarHowFastAndHowLongStill) {
  EXPECT_EQ(pace_text({.done = 12'000'000, .total = 48'000'000, .taken = 2s}),
            "12.0 of 48.0 MB, 6.0 MB/s, 6 s left");
}

TEST(Pace, WhatWasThereBeforeDoesNotMakeItFaster) {
  EXPECT_EQ(pace_text({.begin = 10'000'000, .done = 12'000'000, .total = 16'000'000, .taken = 1s}),
            "12.0 of 16.0 MB, 2.0 MB/s, 2 s left");
}

TEST(Pace, IsNotGuessedInTheBeginning) {
  EXPECT_EQ(pace_text({.done = 1'000'000, .total = 2'000'000, .taken = 100ms}), "1.0 of 2.0 MB");
  EXPECT_EQ(pace_text({.begin = 5, .done = 5, .total = 2'000'000, .taken = 10s}), "0.0 of 2.0 MB");
}

TEST(Pace, OfAnUnknownTotalSaysNothingOfTheEnd) {
  EXPECT_EQ(pace_text({.done = 4'000'000, .taken = 2s}), "4.0 MB, 2.0 MB/s");
  EXPECT_EQ(fraction_of({.done = 4'000'000}), 0.0);
}

TEST(Pace, IsOneAtTheEnd) { EXPECT_EQ(fraction_of({.done = 7, .total = 7}), 1.0); }

}  // namespace
}  // namespace pawl::images
