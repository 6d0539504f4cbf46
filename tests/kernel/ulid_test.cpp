// SPDX-License-Identifier: Apache-2.0
#include "pawl/ulid.hpp"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <unordered_set>

namespace {

using namespace std::chrono_literals;
using pawl::Duration;
using pawl::Time;
using pawl::Ulid;
using pawl::UlidSource;

constexpr std::uint64_t kAllBits = std::numeric_limits<std::uint64_t>::max();

UlidSource source_giving(std::uint64_t bits) {
  return UlidSource([bits] { return bits; });
}

TEST(Ulid, TheTextOfKnownBytes) {
  EXPECT_EQ(Ulid().to_string(), "00000000000000000000000000");
  Ulid::Bytes ones;
  ones.fill(0xFF);
  EXPECT_EQ(Ulid(ones).to_string(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
  const Ulid::Bytes counting{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF,
                             0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF};
  EXPECT_EQ(Ulid(counting).to_string(), "014D2PF2DBSQQG28T5CY4TQKFF");
}

TEST(Ulid, ParsesEitherCase) {
  const auto upper = Ulid::parse("01JCV7Q3M8K5T2X9ZB4N6R0WYD");
  const auto lower = Ulid::parse("01jcv7q3m8k5t2x9zb4n6r0wyd");
  ASSERT_TRUE(upper && lower);
  EXPECT_EQ(*upper, *lower);
  EXPECT_EQ(lower->to_string(), "01JCV7Q3M8K5T2X9ZB4N6R0WYD");
}

TEST(Ulid, CarriesItsTimeToTheMillisecond) {
  auto ids = source_giving(kAllBits);
  EXPECT_EQ(ids.next(Time(1'700'000'000'123'456us)).time(), Time(1'700'000'000'123ms));
}

TEST(Ulid, IsSixteenBytes) { EXPECT_EQ(sizeof(Ulid), 16u); }

struct BadUlid {
  std::string text;
  std::string why;
};

class RefusedUlid : public testing::TestWithParam<BadUlid> {};

TEST_P(RefusedUlid, IsRefusedWithItsReason) {
  const auto result = Ulid::parse(GetParam().text);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), pawl::Code::invalid_argument);
  EXPECT_THAT(result.error().message(), testing::HasSubstr(" is not a ULID: " + GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Ulid, RefusedUlid,
    testing::Values(BadUlid{"", "it has 0 characters; expected 26 characters such as"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0WY", "it has 25 characters"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0WYDD", "it has 27 characters"},
                    BadUlid{std::string(100'000, '0'), "it has 100000 characters"},
                    BadUlid{"81JCV7Q3M8K5T2X9ZB4N6R0WYD", "the first character is above 7"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0WYI", "character 26 is not one of 0123456789ABCDEFGH"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0WYl", "character 26 is not"},
                    BadUlid{"01JCV7Q3M8KOT2X9ZB4N6R0WYD", "character 12 is not"},
                    BadUlid{"U1JCV7Q3M8K5T2X9ZB4N6R0WYD", "character 1 is not"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0W-D", "character 25 is not"},
                    BadUlid{"01JCV7Q3M8K5T2X9ZB4N6R0W\xC3\xA4", "character 25 is not"}));

TEST(UlidSource, CountsUpWithinAMillisecond) {
  auto ids = source_giving(0);
  EXPECT_EQ(ids.next(Time(1ms)).to_string(), "00000000010000000000000000");
  EXPECT_EQ(ids.next(Time(1ms + 999us)).to_string(), "00000000010000000000000001");
  EXPECT_EQ(ids.next(Time(2ms)).to_string(), "00000000020000000000000000");
}

TEST(UlidSource, CarriesFromTheLowerToTheUpperRandomBits) {
  std::vector<std::uint64_t> bits{kAllBits, 0};
  UlidSource ids([&, i = std::size_t{0}]() mutable { return bits.at(i++); });
  EXPECT_EQ(ids.next(Time(0ms)).bytes(),
            (Ulid::Bytes{0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_EQ(ids.next(Time(0ms)).bytes(), (Ulid::Bytes{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(UlidSource, AClockThatGoesBackNeverMakesASmallerOne) {
  auto ids = source_giving(0);
  const Ulid before = ids.next(Time(10s));
  const Ulid after = ids.next(Time(1s));
  EXPECT_GT(after, before);
  EXPECT_EQ(after.time(), Time(10s));
}

TEST(UlidSource, GoesOnToTheNextMillisecondWhenTheRandomBitsRunOver) {
  auto ids = source_giving(kAllBits);
  EXPECT_EQ(ids.next(Time(5ms)).time(), Time(5ms));
  EXPECT_EQ(ids.next(Time(5ms)).time(), Time(6ms));
  EXPECT_EQ(ids.next(Time(6ms)).time(), Time(7ms)) << "the clock has caught up with a borrowed millisecond";
}

TEST(UlidSource, TimesItCannotHoldAreBroughtIntoRange) {
  EXPECT_EQ(source_giving(0).next(Time(-1us)).time(), Time(0ms));
  EXPECT_EQ(source_giving(0).next(Time::min()).time(), Time(0ms));
  EXPECT_EQ(source_giving(0).next(Time::max()).time(), Time(281'474'976'710'655ms));
}

Ulid any_ulid() {
  Ulid::Bytes bytes;
  for (auto& byte : bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  return Ulid(bytes);
}

RC_GTEST_PROP(UlidProperty, ParsingWhatWasPrintedGivesTheSame, ()) {
  const Ulid id = any_ulid();
  const auto parsed = Ulid::parse(id.to_string());
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == id);
}

RC_GTEST_PROP(UlidProperty, TextOrderIsByteOrder, ()) {
  const Ulid a = any_ulid();
  const Ulid b = any_ulid();
  RC_ASSERT((a <=> b) == (a.to_string() <=> b.to_string()));
}

RC_GTEST_PROP(UlidProperty, EachIsGreaterThanTheOneBeforeWhateverTheClockDoes, ()) {
  // Few distinct random bits and times, so that repeats, steps back and overflows all happen.
  UlidSource ids([] { return *rc::gen::element<std::uint64_t>(0, 1, kAllBits - 1, kAllBits); });
  const auto times = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-2, 5));
  std::vector<Ulid> made;
  for (const int millis : times) made.push_back(ids.next(Time(std::chrono::milliseconds(millis))));
  RC_ASSERT(std::ranges::adjacent_find(made, std::ranges::greater_equal{}) == made.end());
}

RC_GTEST_PROP(UlidProperty, EqualIdsHashEqualAndNeighboursDiffer, ()) {
  auto ids = source_giving(*rc::gen::arbitrary<std::uint64_t>());
  std::unordered_set<Ulid> seen;
  std::unordered_set<std::size_t> hashes;
  for (int i = 0; i < 100; ++i) {
    const Ulid id = ids.next(Time(1s));
    seen.insert(id);
    hashes.insert(std::hash<Ulid>{}(Ulid::parse(id.to_string()).value()));
    RC_ASSERT(seen.contains(id));
  }
  RC_ASSERT(seen.size() == 100u);
  RC_ASSERT(hashes.size() == 100u);
}

}  // namespace
