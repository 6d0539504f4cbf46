// SPDX-License-Identifier: Apache-2.0
// `Lane::run_here` in the simulation: an idle lane may run a task on the caller's thread, as the seed
// decides.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "pawl/sim.hpp"

namespace {

using namespace std::chrono_literals;
using pawl::sim::Process;
using pawl::sim::Simulation;

/// The first seed with which an idle lane runs a task on the thread of its caller.
std::uint64_t inline_seed() {
  for (std::uint64_t seed = 0;; ++seed) {
    Simulation sim{{.seed = seed}};
    const auto lane = sim.spawn("node").open_lane("lane");
    pawl::Task task = [] {};
    if (lane->run_here(task)) return seed;
  }
}

TEST(SimInline, TheSeedDecidesWhetherAnIdleLaneRunsATaskHere) {
  std::set<bool> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulation sim{{.seed = seed}};
    const auto lane = sim.spawn("node").open_lane("lane");
    bool ran = false;
    pawl::Task task = [&] { ran = true; };
    const bool here = lane->run_here(task);
    EXPECT_EQ(here, ran);
    EXPECT_EQ(here, task == nullptr) << "a task that was refused is as it was";
    seen.insert(here);
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(SimInline, ALaneThatHasSomethingToDoRefuses) {
  Simulation sim{{.seed = inline_seed()}};
  const auto lane = sim.spawn("node").open_lane("lane");
  lane->post([] {});
  pawl::Task task = [] { FAIL(); };
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(lane->run_here(task));
}

TEST(SimInline, ATaskOfALaneDoesNotRunAnotherBelowIt) {
  Simulation sim{{.seed = inline_seed()}};
  Process& node = sim.spawn("node");
  const auto busy = node.open_lane("busy");
  const auto idle = node.open_lane("idle");
  bool refused = true;
  busy->post([&] {
    pawl::Task task = [] {};
    for (int i = 0; i < 20; ++i) refused = refused && !idle->run_here(task) && !busy->run_here(task);
  });
  sim.run_until_idle();
  EXPECT_TRUE(refused);
}

TEST(SimInline, AJobRunsATaskOfItsProcessAndNotOfAnother) {
  Simulation sim{{.seed = inline_seed()}};
  Process& node = sim.spawn("node");
  Process& other = sim.spawn("other");
  const auto own = node.open_lane("lane");
  const auto foreign = other.open_lane("lane");
  const auto workers = node.open_thread_pool("io", {.threads = 1});
  int ran = 0;
  ASSERT_TRUE(workers->submit([&](std::stop_token) {
    for (int i = 0; i < 20; ++i) {
      pawl::Task mine = [&] { ++ran; };
      (void)own->run_here(mine);
      pawl::Task theirs = [] {};
      EXPECT_FALSE(foreign->run_here(theirs));
    }
  }));
  sim.run_until_idle();
  EXPECT_GT(ran, 0);
}

TEST(SimInline, ACrashBelowAnOutsideCallerIsLearnedWhereItWaits) {
  Simulation sim{{.seed = inline_seed()}};
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  sim.arm("point", pawl::sim::crash_at_hit(1));
  bool returned = false;
  const bool lives = node.attempt([&] {
    pawl::Task task = [&] { (void)node.fault("point"); };
    EXPECT_TRUE(lane->run_here(task));
    returned = true;  // callers keep their books before they wait
    pawl::Gate gate;
    (void)node.wait(gate);
    ADD_FAILURE() << "the code of a crashed process went on";
  });
  EXPECT_TRUE(returned);
  EXPECT_FALSE(lives);
}

TEST(SimInline, AViolationOfTheTaskComesOutOfTheWait) {
  Simulation sim{{.seed = inline_seed()}};
  Process& node = sim.spawn("node");
  const auto lane = node.open_lane("lane");
  pawl::Task task = [&] { sim.require(false, "broken"); };
  EXPECT_TRUE(lane->run_here(task));
  pawl::Gate gate;
  EXPECT_THROW(node.wait(gate), pawl::sim::Violation);
}

}  // namespace
