// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/seeds/fleet_machine.hpp"
#include "tests/seeds/table_check.hpp"

namespace {

using namespace seeds::fleet;
using testing::IsEmpty;

// The drawing has a seventh edge, PRIMARY to TERMINATED: it stands for the way over ZOMBIE.
TEST(FleetInstance, HasTheSixPhysicalTransitionsOfTheDocument) {
  const seeds::Table table{.initial = "REPLICA",
                           .terminal = {"TERMINATED"},
                           .legal = {
                               {"PRIMARY", "Heartbeat", "PRIMARY"},
                               {"PRIMARY", "Demote", "ZOMBIE"},
                               {"REPLICA", "Promote", "PRIMARY"},
                               {"REPLICA", "PromotionFailed", "ZOMBIE"},
                               {"REPLICA", "TerminationConfirmed", "TERMINATED"},
                               {"ZOMBIE", "TerminationConfirmed", "TERMINATED"},
                           }};
  EXPECT_EQ(pawl::define<instance>().transitions.size(), 6U);
  EXPECT_THAT(seeds::differences<instance>(table), IsEmpty());
}

TEST(FleetInstance, APrimaryIsFencedBeforeItIsTerminated) {
  pawl::Local<instance> primary({}, Role::primary);
  EXPECT_EQ(primary.send(TerminationConfirmed{}).error().code(), pawl::Code::illegal_event);
  ASSERT_TRUE(primary.send(Demote{.reason = "lost_lease"}));
  EXPECT_EQ(primary.data().zombie_reason, "lost_lease");
  ASSERT_TRUE(primary.send(TerminationConfirmed{}));
  EXPECT_EQ(primary.state(), Role::terminated);
}

}  // namespace
