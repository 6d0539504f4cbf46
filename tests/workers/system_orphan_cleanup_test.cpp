// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/process_world.hpp"
#include "workers/orphan_cleanup.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::ElementsAre;

TEST(OrphanCleanup, AreEndedWhenNobodyHasThemAtTwoLooks) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("kept", 1, counted(world)));
  ASSERT_TRUE(manager.start("stray", 1, counted(world)));
  OrphanCleanup cleanup(manager, world.root() + "/notes", {}, {});
  cleanup.run({"kept"});
  EXPECT_EQ(manager.status("stray").value().state, ProcessState::running);
  cleanup.run({"kept"});
  EXPECT_THAT(manager.list().value(), ElementsAre("kept"));
  EXPECT_EQ(manager.status("kept").value().state, ProcessState::running);
}

TEST(OrphanCleanup, AreNotThoseOfWorkersThatThisProgramDoesNotKnow) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("other/child-0", 1, counted(world)));
  OrphanCleanup cleanup(manager, world.root() + "/notes", {}, {"other/child-0"});
  cleanup.run({});
  cleanup.run({});
  EXPECT_EQ(manager.status("other/child-0").value().state, ProcessState::running);
}

}  // namespace
}  // namespace pawl::workers::test
