// SPDX-License-Identifier: Apache-2.0
#include "pawl/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using pawl::Random;

// The published sequence of xoshiro256** from the state 1, 2, 3, 4.
TEST(Random, FollowsThePublishedSequence) {
  Random random{Random::State{1, 2, 3, 4}};
  for (const std::uint64_t expected : {11520ULL, 0ULL, 1509978240ULL, 1215971899390074240ULL}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Random, SplitmixFollowsThePublishedSequence) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t expected :
       {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL}) {
    EXPECT_EQ(pawl::splitmix64(state), expected);
  }
}

TEST(Random, EqualSeedsGiveEqualNumbersAndOthersOthers) {
  Random a{7};
  Random b{7};
  Random c{8};
  bool differs = false;
  for (int i = 0; i < 10; ++i) {
    const auto drawn = a.next();
    EXPECT_EQ(drawn, b.next());
    differs = differs || drawn != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, DrawsEveryNumberBelowTheBoundAndNoOther) {
  for (const std::uint64_t bound : {1ULL, 2ULL, 3ULL, 6ULL, 64ULL, 65ULL}) {
    Random random{bound};
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 2000; ++i) seen.insert(random.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_EQ(*seen.rbegin(), bound - 1);
  }
}

TEST(Random, DrawsBelowTheLargestBound) {
  Random random{1};
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(UINT64_MAX), UINT64_MAX);
}

TEST(Random, DrawsEachNumberAboutEquallyOften) {
  Random random{3};
  std::array<int, 3> counts{};
  for (int i = 0; i < 30'000; ++i) ++counts[random.below(3)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(Random, AChanceOfNoneAndOfAMillionAreCertain) {
  Random random{5};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.chance_ppm(0));
    EXPECT_TRUE(random.chance_ppm(1'000'000));
  }
}

}  // namespace
