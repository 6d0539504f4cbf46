// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/process_world.hpp"
#include "workers/strays.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::ElementsAre;

TEST(Strays, AreEndedWhenNobodyHasThemAtTwoLooks) {
  const World world;
  const auto keeper = world.keeper();
  ASSERT_TRUE(keeper.start("kept", 1, counted(world)));
  ASSERT_TRUE(keeper.start("stray", 1, counted(world)));
  Strays strays(keeper, world.root() + "/notes", {}, {});
  strays.look({"kept"});
  EXPECT_EQ(keeper.look("stray").value().state, ProcessState::running);
  strays.look({"kept"});
  EXPECT_THAT(keeper.list().value(), ElementsAre("kept"));
  EXPECT_EQ(keeper.look("kept").value().state, ProcessState::running);
}

TEST(Strays, AreNotThoseOfWorkersThatThisProgramDoesNotKnow) {
  const World world;
  const auto keeper = world.keeper();
  ASSERT_TRUE(keeper.start("other/child-0", 1, counted(world)));
  Strays strays(keeper, world.root() + "/notes", {}, {"other/child-0"});
  strays.look({});
  strays.look({});
  EXPECT_EQ(keeper.look("other/child-0").value().state, ProcessState::running);
}

}  // namespace
}  // namespace pawl::workers::test
