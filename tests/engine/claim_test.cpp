// SPDX-License-Identifier: Apache-2.0
// Work that is done elsewhere: timeouts of claims, lapsed leases of the store, repeated completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/engine.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::claims {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ClaimTest : public testing::Test {
 protected:
  ClaimTest() { EXPECT_TRUE(world->commit(Transaction{}.begin<order>("o", {}, Place{}))); }

  static Machines machines() {
    Machines made;
    made.add<order>();
    made.work<order, Charge>("charge", [](const WorkContext&, const Charge&) { return no_reply(); },
                             {.lease = 30s});
    return made;
  }
  /// Claims and notes the attempt of the answer, 0 for no work.
  void claim(Duration wait) {
    world->claim("order", {"charge"}, wait, [this](const auto& outcome) {
      ASSERT_TRUE(outcome) << outcome.error().to_string();
      claimed.push_back(*outcome ? (*outcome)->lease.attempt : 0);
      if (*outcome) lease = (*outcome)->lease;
    });
  }
  void complete(const std::string& receipt) {
    world->complete(lease, reply(Charged{receipt}),
                    [this](const auto& outcome) { codes.push_back(code_of(outcome)); });
  }
  void advance(Duration time) { world.simulation().run_for(time); }

  LeaseFate fate;
  std::vector<std::uint32_t> claimed;
  std::vector<Code> codes;
  Lease lease;
  World world{machines,
              {.schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}}},
              {.opener = opens<Leased>(fate)}};
};

TEST_F(ClaimTest, AClaimEndsInTimeAlsoWhereItsAttemptCannotBeRecorded) {
  fate.lapsed = true;
  claim(10s);
  advance(9s);
  EXPECT_THAT(claimed, IsEmpty());
  advance(2s);
  EXPECT_THAT(claimed, ElementsAre(0U));
}

TEST_F(ClaimTest, AClaimThatDoesNotWaitEndsSoonWhereItsAttemptCannotBeRecorded) {
  fate.lapsed = true;
  claim(0s);
  advance(2s);
  EXPECT_THAT(claimed, ElementsAre(0U));
}

TEST_F(ClaimTest, AnAttemptThatBeginsAfterItsClaimEndedGoesToTheNextClaim) {
  fate.lapsed = true;
  claim(10s);
  advance(11s);
  fate.lapsed = false;
  advance(1min);
  claim(1s);
  advance(2s);
  EXPECT_THAT(claimed, ElementsAre(0U, 1U));
  complete("r");
  advance(1s);
  EXPECT_THAT(codes, ElementsAre(Code{}));
  EXPECT_EQ(world->get<order>("o").value().state, Order::paid);
}

TEST_F(ClaimTest, AnAttemptThatBeginsAfterItsClaimEndedGoesToAClaimThatWaitsAlready) {
  fate.lapsed = true;
  claim(10s);
  claim(1h);
  advance(11s);
  EXPECT_THAT(claimed, ElementsAre(0U));
  fate.lapsed = false;
  advance(1min);
  EXPECT_THAT(claimed, ElementsAre(0U, 1U));
}

TEST_F(ClaimTest, AnAttemptThatNobodyHasClaimedEndsWithItsInstance) {
  fate.lapsed = true;
  claim(10s);
  advance(11s);
  fate.lapsed = false;
  advance(1min);
  ASSERT_TRUE(world->send<order>("o", Expire{}));
  claim(1s);
  advance(2s);
  EXPECT_THAT(claimed, ElementsAre(0U, 0U));
}

TEST_F(ClaimTest, AHeartbeatIsNotAcceptedWithoutTheLeaseOfTheStore) {
  claim(1s);
  advance(1s);
  ASSERT_THAT(claimed, ElementsAre(1U));
  fate.lapsed = true;
  EXPECT_EQ(code_of(world->heartbeat(lease)), Code::store_fenced);
  fate.lapsed = false;
  EXPECT_TRUE(world->heartbeat(lease));
}

TEST_F(ClaimTest, ARepeatedCompletionSharesTheOutcomeOfTheFirst) {
  claim(1s);
  advance(1s);
  fate.lapsed = true;
  complete("r");
  complete("r");
  advance(1s);
  EXPECT_THAT(codes, IsEmpty());
  fate.lapsed = false;
  advance(1min);
  EXPECT_THAT(codes, ElementsAre(Code{}, Code{}));
  EXPECT_EQ(world->get<order>("o").value().data.receipt, "r");
}

TEST_F(ClaimTest, ACompletionWithAnotherResultDoesNotShareTheOutcome) {
  claim(1s);
  advance(1s);
  fate.lapsed = true;
  complete("r");
  complete("other");
  fate.lapsed = false;
  advance(1min);
  EXPECT_THAT(codes, ElementsAre(Code::lease_lost, Code{}));
}

TEST_F(ClaimTest, ACompletionAfterTheFirstIsDurableHasLostItsLease) {
  claim(1s);
  advance(1s);
  complete("r");
  advance(1s);
  complete("r");
  advance(1s);
  EXPECT_THAT(codes, ElementsAre(Code{}, Code::lease_lost));
}

}  // namespace
}  // namespace pawl::test::claims
