// SPDX-License-Identifier: Apache-2.0
#include "pawl/retry.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cmath>

namespace {

using namespace std::chrono_literals;
using pawl::delay_after;
using pawl::Duration;
using pawl::Jitter;
using pawl::RetryPolicy;

constexpr std::uint64_t kMostRandom = std::numeric_limits<std::uint64_t>::max();

constexpr RetryPolicy kDoubling{
    .retries = 5, .first = 200ms, .factor = 2.0, .cap = 30s, .jitter = Jitter::none};
static_assert(kDoubling.retries == 5 && kDoubling.first == 200ms, "usable in constant expressions");

std::vector<Duration> delays(const RetryPolicy& policy, std::uint32_t most = 100) {
  std::vector<Duration> found;
  for (std::uint32_t failed = 1; failed <= most; ++failed) {
    const auto delay = delay_after(policy, failed, 0);
    if (!delay) break;
    found.push_back(*delay);
  }
  return found;
}

TEST(Retry, ExponentialDelaysGrowByTheFactor) {
  EXPECT_THAT(delays(kDoubling), testing::ElementsAre(200ms, 400ms, 800ms, 1600ms, 3200ms));
}

TEST(Retry, AFactorOfOneMakesTheDelayFixed) {
  const RetryPolicy policy{.retries = 3, .first = 2s, .factor = 1.0, .jitter = Jitter::none};
  EXPECT_THAT(delays(policy), testing::ElementsAre(2s, 2s, 2s));
}

TEST(Retry, DelaysStopAtTheCap) {
  const RetryPolicy policy{.retries = 4, .first = 10s, .factor = 3.0, .cap = 60s, .jitter = Jitter::none};
  EXPECT_THAT(delays(policy), testing::ElementsAre(10s, 30s, 60s, 60s));
}

TEST(Retry, NRetriesAllowNPlusOneExecutions) {
  for (const std::uint32_t retries : {0u, 1u, 2u, 17u}) {
    EXPECT_EQ(delays({.retries = retries}).size(), retries);
  }
}

TEST(Retry, NeverAllowsOneExecution) { EXPECT_EQ(delay_after(pawl::kNever, 1, 0), std::nullopt); }

TEST(Retry, UnlimitedNeverEnds) {
  const RetryPolicy policy{
      .retries = RetryPolicy::kUnlimited, .first = 1s, .cap = 1min, .jitter = Jitter::none};
  EXPECT_EQ(delay_after(policy, std::numeric_limits<std::uint32_t>::max(), 0), 1min);
}

TEST(Retry, WithoutAFailureNothingWaits) {
  EXPECT_EQ(delay_after(kDoubling, 0, kMostRandom), Duration(0));
  EXPECT_EQ(delay_after(pawl::kNever, 0, kMostRandom), Duration(0));
}

TEST(Retry, FullJitterSpreadsFromZeroToTheDelay) {
  const RetryPolicy policy{.retries = 1, .first = 9us, .factor = 1.0, .cap = 1s, .jitter = Jitter::full};
  std::set<Duration> seen;
  for (std::uint64_t random = 0; random < 100; ++random) seen.insert(*delay_after(policy, 1, random));
  EXPECT_THAT(seen, testing::ElementsAre(0us, 1us, 2us, 3us, 4us, 5us, 6us, 7us, 8us, 9us));
}

TEST(Retry, EqualJitterSpreadsHalfTheDelayToBothSides) {
  const RetryPolicy policy{.retries = 1, .first = 4us, .factor = 1.0, .cap = 1s, .jitter = Jitter::equal};
  std::set<Duration> seen;
  for (std::uint64_t random = 0; random < 100; ++random) seen.insert(*delay_after(policy, 1, random));
  EXPECT_THAT(seen, testing::ElementsAre(2us, 3us, 4us, 5us, 6us));
}

TEST(Retry, EqualJitterAtTheCapSpreadsBelowIt) {
  const RetryPolicy policy{.retries = 1, .first = 4us, .factor = 1.0, .cap = 4us, .jitter = Jitter::equal};
  std::set<Duration> seen;
  for (std::uint64_t random = 0; random < 100; ++random) seen.insert(*delay_after(policy, 1, random));
  EXPECT_THAT(seen, testing::ElementsAre(2us, 3us, 4us));
}

struct Refused {
  std::string field;
  std::string message;
  RetryPolicy policy;
};

class RefusedRetryPolicy : public testing::TestWithParam<Refused> {};

TEST_P(RefusedRetryPolicy, IsRefusedWithWhatWouldBeRight) {
  const auto result = pawl::validate(GetParam().policy);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), pawl::Code::invalid_argument);
  EXPECT_EQ(result.error().field("field"), GetParam().field);
  EXPECT_EQ(result.error().message(), "retry policy: " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Retry, RefusedRetryPolicy,
    testing::Values(
        Refused{"first", "the first delay is -1 us; it must not be negative", {.first = -1us}},
        Refused{"cap",
                "the cap of 1000 us is below the first delay of 2000 us; raise the cap",
                {.first = 2ms, .cap = 1ms}},
        Refused{"factor", "the factor is 0.5; it must be 1 (fixed delay) or more", {.factor = 0.5}},
        Refused{"factor", "the factor is nan; it must be 1 (fixed delay) or more", {.factor = NAN}},
        Refused{"factor", "the factor is inf; it must be 1 (fixed delay) or more", {.factor = INFINITY}},
        Refused{"first",
                "unlimited retries without a delay would never rest; give a first delay",
                {.retries = RetryPolicy::kUnlimited, .first = 0us}},
        Refused{"jitter",
                "there is no jitter number 7; expected none, full or equal",
                {.jitter = static_cast<Jitter>(7)}}));

TEST(Retry, TheDefaultsAndNeverAreValid) {
  EXPECT_TRUE(pawl::validate({}));
  EXPECT_TRUE(pawl::validate(pawl::kNever));
  EXPECT_TRUE(pawl::validate({.retries = 2, .first = 0us})) << "a few immediate retries are fine";
}

/// Numbers of every magnitude and both signs: shifting spreads them over the exponents.
std::int64_t any_count() { return *rc::gen::arbitrary<std::int64_t>() >> *rc::gen::inRange(0, 63); }

RetryPolicy any_policy() {
  RetryPolicy policy;
  policy.retries =
      *rc::gen::oneOf(rc::gen::arbitrary<std::uint32_t>(), rc::gen::just(RetryPolicy::kUnlimited));
  policy.first = Duration(any_count());
  policy.factor = *rc::gen::oneOf(rc::gen::arbitrary<double>(),
                                  rc::gen::element(0.0, -1.0, 1.0, 1.0000001, 2.0, 1e308, NAN, INFINITY));
  policy.cap = *rc::gen::oneOf(rc::gen::just(Duration::max()), rc::gen::just(Duration::min()),
                               rc::gen::exec([] { return Duration(any_count()); }));
  policy.jitter = *rc::gen::element(Jitter::none, Jitter::full, Jitter::equal);
  return policy;
}

rc::Gen<std::uint64_t> any_random() {
  return rc::gen::oneOf(rc::gen::arbitrary<std::uint64_t>(),
                        rc::gen::element<std::uint64_t>(0, kMostRandom, kMostRandom / 2));
}

rc::Gen<std::uint32_t> any_attempts() {
  return rc::gen::oneOf(rc::gen::arbitrary<std::uint32_t>(), rc::gen::inRange<std::uint32_t>(0, 80),
                        rc::gen::just(std::numeric_limits<std::uint32_t>::max()));
}

RC_GTEST_PROP(RetryProperty, DelaysAreNeverNegativeAndNeverAboveTheCap, ()) {
  const RetryPolicy policy = any_policy();
  const auto delay = delay_after(policy, *any_attempts(), *any_random());
  if (!delay) return;
  RC_ASSERT(*delay >= Duration(0));
  RC_ASSERT(*delay <= std::max(policy.cap, Duration(0)));
}

RC_GTEST_PROP(RetryProperty, ADelayIsGivenExactlyWhileRetriesAreLeft, ()) {
  const RetryPolicy policy = any_policy();
  const std::uint32_t failed = *any_attempts();
  const bool left = policy.retries == RetryPolicy::kUnlimited || failed <= policy.retries;
  RC_ASSERT(delay_after(policy, failed, *any_random()).has_value() == left);
}

RC_GTEST_PROP(RetryProperty, PlainDelaysNeverShrinkFromOneRetryToTheNext, ()) {
  RetryPolicy policy = any_policy();
  policy.retries = RetryPolicy::kUnlimited;
  policy.jitter = Jitter::none;
  const std::uint32_t failed = *rc::gen::inRange<std::uint32_t>(1, 2000);
  RC_ASSERT(*delay_after(policy, failed, 0) <= *delay_after(policy, failed + 1, 0));
}

RC_GTEST_PROP(RetryProperty, JitterStaysWithinItsPromise, ()) {
  RetryPolicy policy = any_policy();
  const std::uint32_t failed = *any_attempts();
  policy.retries = RetryPolicy::kUnlimited;
  policy.jitter = Jitter::none;
  const Duration plain = *delay_after(policy, failed, 0);
  policy.jitter = Jitter::full;
  const std::uint64_t random = *any_random();
  RC_ASSERT(*delay_after(policy, failed, random) <= plain);
  policy.jitter = Jitter::equal;
  const Duration around = *delay_after(policy, failed, random);
  RC_ASSERT(around >= plain / 2);
  RC_ASSERT((around <= plain || around - plain <= plain / 2));
}

}  // namespace
