// SPDX-License-Identifier: Apache-2.0
#include "pawl/permits.hpp"

#include <gtest/gtest.h>

namespace pawl {

void PrintTo(const PermitChange& change, std::ostream* out) {
  *out << (change.kind == PermitChange::Kind::grant ? "grant " : "revoke ") << change.holder << " "
       << change.permits;
}

}  // namespace pawl

namespace {

using pawl::Code;
using pawl::PermitChange;
using pawl::PermitChanges;
using pawl::PermitPool;
using testing::ElementsAre;
using testing::IsEmpty;

PermitChange grant(std::string holder, std::uint32_t permits) {
  return {PermitChange::Kind::grant, std::move(holder), permits};
}
PermitChange revoke(std::string holder, std::uint32_t permits) {
  return {PermitChange::Kind::revoke, std::move(holder), permits};
}
PermitPool pool_of(std::uint32_t size) { return PermitPool::open("downloads", size).value(); }

std::vector<std::string> line(const PermitPool& pool) {
  std::vector<std::string> names;
  for (const auto& waiter : pool.waiting()) names.push_back(waiter.holder);
  return names;
}

TEST(Permits, FreePermitsAreGrantedAtOnce) {
  auto pool = pool_of(5);
  EXPECT_THAT(pool.request("a", 3, 3).value(), ElementsAre(grant("a", 3)));
  EXPECT_EQ(pool.held("a"), 3u);
  EXPECT_EQ(pool.free(), 2u);
}

TEST(Permits, AGrantMayBePartialAndSettlesTheRequest) {
  auto pool = pool_of(5);
  (void)pool.request("a", 3, 3);
  EXPECT_THAT(pool.request("b", 4, 1).value(), ElementsAre(grant("b", 2)));
  EXPECT_THAT(pool.release("a", 3).value(), IsEmpty()) << "b is not topped up";
  EXPECT_EQ(pool.held("b"), 2u);
}

TEST(Permits, AHolderMayAskForMoreAtTheEndOfTheLine) {
  auto pool = pool_of(3);
  (void)pool.request("a", 3, 3);
  (void)pool.request("b", 1, 1);
  EXPECT_THAT(pool.release("a", 1).value(), ElementsAre(grant("b", 1)));
  EXPECT_THAT(pool.request("a", 1, 1).value(), IsEmpty());
  EXPECT_THAT(pool.release("b", 1).value(), ElementsAre(grant("a", 1)));
  EXPECT_EQ(pool.held("a"), 3u);
}

TEST(Permits, TheHeadOfTheLineIsNotOvertakenBySomeoneWhoWouldFit) {
  auto pool = pool_of(4);
  (void)pool.request("a", 3, 3);
  EXPECT_THAT(pool.request("big", 4, 2).value(), IsEmpty());
  EXPECT_THAT(pool.request("small", 1, 1).value(), IsEmpty()) << "one permit is free, but big is first";
  EXPECT_THAT(pool.release("a", 1).value(), ElementsAre(grant("big", 2)));
  EXPECT_THAT(pool.release("a", 2).value(), ElementsAre(grant("small", 1)));
}

TEST(Permits, OneReleaseServesAsManyWaitersAsFit) {
  auto pool = pool_of(3);
  (void)pool.request("a", 3, 3);
  for (const auto* name : {"b", "c", "d", "e"}) (void)pool.request(name, 1, 1);
  EXPECT_THAT(pool.release("a", 3).value(), ElementsAre(grant("b", 1), grant("c", 1), grant("d", 1)));
  EXPECT_THAT(line(pool), ElementsAre("e"));
}

TEST(Permits, AHigherPriorityStandsInFrontAndEqualOnesInTheirOrder) {
  auto pool = pool_of(1);
  (void)pool.request("holder", 1, 1);
  (void)pool.request("low", 1, 1, -1);
  (void)pool.request("first", 1, 1);
  (void)pool.request("second", 1, 1);
  (void)pool.request("high", 1, 1, 5);
  EXPECT_THAT(line(pool), ElementsAre("high", "first", "second", "low"));
  EXPECT_THAT(pool.forget("holder").value(), ElementsAre(grant("high", 1)));
}

TEST(Permits, GrowingServesTheLine) {
  auto pool = pool_of(1);
  (void)pool.request("a", 1, 1);
  (void)pool.request("b", 2, 1);
  EXPECT_THAT(pool.resize(3).value(), ElementsAre(grant("b", 2)));
}

TEST(Permits, ShrinkingAsksTheNewestGrantsFirstToGiveBack) {
  auto pool = pool_of(6);
  for (const auto* name : {"old", "middle", "new"}) (void)pool.request(name, 2, 2);
  EXPECT_THAT(pool.resize(3).value(), ElementsAre(revoke("new", 2), revoke("middle", 1)));
  EXPECT_EQ(pool.granted(), 6u) << "revoking is a request; the permits are still out";
  EXPECT_EQ(pool.revoking(), 3u);
  EXPECT_THAT(pool.holders(), ElementsAre(PermitPool::Holder{"old", 2, 0}, PermitPool::Holder{"middle", 2, 1},
                                          PermitPool::Holder{"new", 2, 2}));
}

TEST(Permits, WhatIsBeingRevokedIsNotAskedForTwice) {
  auto pool = pool_of(4);
  (void)pool.request("a", 2, 2);
  (void)pool.request("b", 2, 2);
  EXPECT_THAT(pool.resize(3).value(), ElementsAre(revoke("b", 1)));
  EXPECT_THAT(pool.resize(3).value(), IsEmpty());
  EXPECT_THAT(pool.resize(1).value(), ElementsAre(revoke("b", 1), revoke("a", 1)));
}

TEST(Permits, PermitsGivenBackAfterAShrinkAreNotGrantedAgain) {
  auto pool = pool_of(2);
  (void)pool.request("a", 2, 2);
  (void)pool.request("b", 1, 1);
  (void)pool.resize(1);
  EXPECT_THAT(pool.release("a", 1).value(), IsEmpty());
  EXPECT_EQ(pool.revoking(), 0u);
  EXPECT_THAT(pool.release("a", 1).value(), ElementsAre(grant("b", 1)));
}

TEST(Permits, ReleasingMoreThanWasRevokedEndsTheRevocation) {
  auto pool = pool_of(4);
  (void)pool.request("a", 4, 4);
  (void)pool.resize(3);
  (void)pool.release("a", 2);
  EXPECT_EQ(pool.revoking(), 0u);
  EXPECT_EQ(pool.free(), 1u);
}

TEST(Permits, AWaiterThatNoLongerFitsIsPassedOverAndKeepsItsPlace) {
  auto pool = pool_of(4);
  (void)pool.request("a", 4, 4);
  (void)pool.request("big", 3, 3);
  (void)pool.request("b", 1, 1);
  (void)pool.request("c", 1, 1);
  (void)pool.resize(2);
  EXPECT_THAT(pool.release("a", 3).value(), ElementsAre(grant("b", 1)));
  EXPECT_THAT(line(pool), ElementsAre("big", "c"));
  EXPECT_THAT(pool.resize(4).value(), IsEmpty()) << "two are free, but big is first in line again";
  EXPECT_THAT(pool.release("a", 1).value(), ElementsAre(grant("big", 3)));
  EXPECT_THAT(pool.release("b", 1).value(), ElementsAre(grant("c", 1)));
}

TEST(Permits, ForgettingAHolderFreesWhatItHeld) {
  auto pool = pool_of(2);
  (void)pool.request("a", 2, 2);
  (void)pool.request("b", 2, 1);
  EXPECT_THAT(pool.forget("a").value(), ElementsAre(grant("b", 2)));
}

TEST(Permits, ForgettingTheHeadOfTheLineServesTheNext) {
  auto pool = pool_of(2);
  (void)pool.request("a", 1, 1);
  (void)pool.request("big", 2, 2);
  (void)pool.request("b", 1, 1);
  EXPECT_THAT(pool.forget("big").value(), ElementsAre(grant("b", 1)));
}

TEST(Permits, ForgettingARevokedHolderSettlesTheRevocation) {
  auto pool = pool_of(2);
  (void)pool.request("a", 2, 2);
  (void)pool.resize(1);
  (void)pool.forget("a");
  EXPECT_EQ(pool.revoking(), 0u);
  EXPECT_EQ(pool.free(), 1u);
}

TEST(Permits, RestoreGrantsTheStoredLineInItsOrder) {
  const std::vector<PermitPool::Waiter> stored{{"a", 2, 1}, {"b", 3, 2}, {"c", 1, 1}};
  const auto restored = PermitPool::restore("downloads", 3, stored).value();
  EXPECT_THAT(restored.changes, ElementsAre(grant("a", 2)));
  EXPECT_THAT(restored.pool.waiting(), ElementsAre(stored[1], stored[2]));
}

TEST(Permits, RestoreKeepsAWaiterThatTheSizeNoLongerFits) {
  const auto restored = PermitPool::restore("downloads", 2, {{"big", 3, 3}, {"a", 1, 1}}).value();
  EXPECT_THAT(restored.changes, ElementsAre(grant("a", 1)));
  EXPECT_THAT(line(restored.pool), ElementsAre("big"));
}

TEST(Permits, RestoreRefusesAHolderThatIsThereTwice) {
  const auto restored = PermitPool::restore("downloads", 2, {{"a", 1, 1}, {"a", 1, 1}});
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().message(), "permit pool \"downloads\": \"a\" is twice among the stored waiters");
}

void expect_refused(const auto& result, Code code, std::string_view why) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), code);
  EXPECT_EQ(result.error().message(), "permit pool \"downloads\": " + std::string(why));
  EXPECT_EQ(result.error().field("pool"), "downloads");
}

TEST(Permits, ASizeOfZeroIsRefused) {
  expect_refused(PermitPool::open("downloads", 0), Code::invalid_argument,
                 "the size is 0; it must be at least 1");
  auto pool = pool_of(1);
  expect_refused(pool.resize(0), Code::invalid_argument, "the size is 0; it must be at least 1");
}

TEST(Permits, AnUnknownHolderCannotReleaseOrBeForgotten) {
  auto pool = pool_of(1);
  const auto* why = "\"a\" neither holds nor waits for permits";
  expect_refused(pool.release("a", 1), Code::unknown_name, why);
  expect_refused(pool.forget("a"), Code::unknown_name, why);
}

TEST(Permits, NobodyReleasesMoreThanItHoldsOrNothing) {
  auto pool = pool_of(3);
  (void)pool.request("a", 2, 2);
  expect_refused(pool.release("a", 3), Code::invalid_argument, "\"a\" releases 3 permits but holds 2");
  expect_refused(pool.release("a", 0), Code::invalid_argument, "\"a\" releases 0 permits");
  EXPECT_EQ(pool.held("a"), 2u);
}

TEST(Permits, ARequestThatCouldNeverBeGrantedIsRefused) {
  auto pool = pool_of(3);
  expect_refused(pool.request("a", 4, 4), Code::invalid_argument,
                 "\"a\" holds 0 and asks for at least 4 more, but the pool has only 3; this could never be "
                 "granted");
  (void)pool.request("a", 2, 2);
  expect_refused(pool.request("a", 2, 2), Code::invalid_argument,
                 "\"a\" holds 2 and asks for at least 2 more, but the pool has only 3; this could never be "
                 "granted");
}

TEST(Permits, ARequestMustMakeSense) {
  auto pool = pool_of(3);
  expect_refused(pool.request("", 1, 1), Code::invalid_argument, "the holder has no name");
  expect_refused(pool.request("a", 1, 0), Code::invalid_argument,
                 "\"a\" asks with a minimum of 0; ask for at least 1");
  expect_refused(pool.request("a", 1, 2), Code::invalid_argument,
                 "\"a\" wants 1 permits but at least 2; the minimum must not be more");
}

TEST(Permits, AHolderWaitsOnlyOnce) {
  auto pool = pool_of(1);
  (void)pool.request("a", 1, 1);
  (void)pool.request("b", 1, 1);
  expect_refused(pool.request("b", 1, 1), Code::invalid_argument,
                 "\"b\" waits already; forget the old request first");
}

TEST(Permits, ACopyHasALineOfItsOwn) {
  auto pool = pool_of(1);
  (void)pool.request("a", 1, 1);
  (void)pool.request("b", 2, 1, 7);
  auto copy = pool;
  EXPECT_EQ(copy, pool);
  (void)pool.forget("b");
  EXPECT_THAT(line(copy), ElementsAre("b"));
  EXPECT_EQ(copy.waiting().front(), (PermitPool::Waiter{"b", 2, 1, 7}));
  EXPECT_THAT(copy.release("a", 1).value(), ElementsAre(grant("b", 1)));
  EXPECT_THAT(line(pool), IsEmpty());
}

TEST(Permits, ThoseWhoHoldOrWaitAreKnown) {
  auto pool = pool_of(1);
  (void)pool.request("a", 1, 1);
  (void)pool.request("b", 1, 1);
  EXPECT_TRUE(pool.knows("a"));
  EXPECT_TRUE(pool.knows("b"));
  EXPECT_FALSE(pool.knows("c"));
}

}  // namespace
