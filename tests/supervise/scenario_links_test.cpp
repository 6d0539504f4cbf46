// SPDX-License-Identifier: Apache-2.0
// The acceptance scenarios of workers without children: helloworld, concurrent, failing, panic, slow,
// timeout. Those of persistence and of the communicator are in scenario_store_test.cpp and
// scenario_relay_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/supervise/examples.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

TEST(Scenario, Helloworld) {
  ExampleWorld world;
  world.apply({example("hello", "helloworld")});
  ASSERT_TRUE(world.kit.wait_for("hello", "Running", 10s));
  EXPECT_EQ(world.outside.links["hello"].greetings, 1);
  world.outside.mood = "sad";
  ASSERT_TRUE(world.kit.wait_for("hello", "Degraded", 2s));
  world.outside.mood.reset();
  ASSERT_TRUE(world.kit.wait_for("hello", "Running", 2s));
  EXPECT_EQ(world.outside.links["hello"].greetings, 1);
}

TEST(Scenario, Concurrent) {
  ExampleWorld world;
  std::vector<ChildSpec> five;
  for (int i = 0; i < 5; ++i) five.push_back(example("hello-" + std::to_string(i), "helloworld"));
  world.apply(five);
  const auto all = [&](std::string_view state) {
    return world.kit.wait_until(
        [&] {
          return std::ranges::all_of(world.kit.supervisor().tree(),
                                     [&](const auto& view) { return view.state == state; });
        },
        10s);
  };
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.supervisor().tree().size() == 5; }, 1s));
  EXPECT_TRUE(all("Running"));
  EXPECT_TRUE(world.kit.supervisor().drain().clean);
  EXPECT_TRUE(all("Stopped"));
  EXPECT_EQ(world.kit.supervisor().stats().exceptions, 0U);
}

TEST(Scenario, Failing) {
  ExampleWorld world;
  world.apply({example("three", "child", R"({"max_failures": 3})"),
               example("always", "child", R"({"max_failures": 999999})"),
               example("restarts", "child", R"({"max_failures": 999999, "restart_after_failures": 5})")});
  world.kit.advance(20s);
  const auto& three = world.outside.links["three"].attempts;
  EXPECT_EQ(three, (std::vector<std::string>{"attempt 1, remaining 2", "attempt 2, remaining 1",
                                             "attempt 3, remaining 0"}));
  EXPECT_EQ(world.kit.state("three"), "Connected");
  EXPECT_GE(world.outside.links["always"].attempts.size(), 3U);
  EXPECT_FALSE(world.has_moved("always", "Connected"));
  // The third one was restarted, and counts from one again.
  EXPECT_GE(world.show("restarts").incarnation, 2U);
  const auto moves = world.kit.moves("restarts");
  const std::vector<std::string> expected{"TryingToConnect", "TryingToStop", "Stopped", "TryingToConnect"};
  ASSERT_GE(moves.size(), 4U);
  EXPECT_TRUE(std::ranges::equal(expected, std::vector(moves.begin(), moves.begin() + 4)));
  const auto& attempts = world.outside.links["restarts"].attempts;
  EXPECT_GE(std::ranges::count(attempts, std::string("attempt 1, remaining 999998")), 2);
  EXPECT_EQ(std::ranges::count(attempts, std::string("attempt 6, remaining 999993")), 0);
}

TEST(Scenario, Panic) {
  ExampleWorld world;
  world.apply({example("panics", "child", R"({"should_panic": true})"), example("calm", "child")});
  world.kit.advance(10s);
  EXPECT_NE(world.show("panics").problem.find("panicked as configured to"), std::string::npos);
  EXPECT_FALSE(world.has_moved("panics", "Connected"));
  EXPECT_EQ(world.kit.state("calm"), "Connected");
  EXPECT_GE(world.show("panics").failures, 3U);
  const auto failed = world.log.with("an action has failed");
  ASSERT_GE(failed.size(), 3U);
  for (const auto& line : failed) {
    EXPECT_EQ(line.fields.at("worker"), "panics");
    EXPECT_EQ(line.fields.at("action"), "Connect");
    EXPECT_TRUE(line.fields.at("error").contains("panicked as configured to"));
  }
  world.apply({example("panics", "child"), example("calm", "child")});
  EXPECT_TRUE(world.kit.wait_for("panics", "Connected", 10s));
}

TEST(Scenario, Slow) {
  ExampleWorld world;
  world.apply({example("slow", "child", R"({"delay_seconds": 2})")});
  ASSERT_TRUE(world.kit.wait_for("slow", "Connected", 8s));
  EXPECT_EQ(world.kit.moves("slow"), (std::vector<std::string>{"TryingToConnect", "Connected"}));
  EXPECT_TRUE(world.outside.links["slow"].attempts.empty());
}

TEST(Scenario, SlowWithAShutdownMeanwhile) {
  ExampleWorld world;
  world.apply({example("slow", "child", R"({"delay_seconds": 20})")});
  ASSERT_TRUE(world.kit.wait_until([&] { return world.kit.supervisor().show("slow").has_value(); }));
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("slow").action == "Connect"; }, 3s));
  world.kit.advance(1s);
  const auto began = world.kit.simulation().elapsed();
  EXPECT_TRUE(world.kit.supervisor().drain().clean);
  EXPECT_LE(world.kit.simulation().elapsed() - began, 3s);
  EXPECT_EQ(world.outside.links["slow"].attempts, std::vector<std::string>{"cancelled"});
  EXPECT_EQ(world.kit.state("slow"), "Stopped");
  EXPECT_FALSE(world.has_moved("slow", "Connected"));
}

TEST(Scenario, Timeout) {
  ExampleWorld world;
  world.apply({example("quick", "child"), example("slow", "child", R"({"delay_seconds": 2})"),
               example("retry", "child", R"({"max_failures": 3})"),
               example("combined", "child", R"({"max_failures": 5, "restart_after_failures": 10})")});
  for (const auto* name : {"quick", "slow", "retry", "combined"})
    EXPECT_TRUE(world.kit.wait_for(name, "Connected", 10s)) << name;
  EXPECT_EQ(world.outside.links["retry"].attempts.size(), 3U);
  EXPECT_EQ(world.outside.links["combined"].attempts.size(), 5U);
  EXPECT_EQ(world.show("combined").incarnation, 1U);
}

}  // namespace
}  // namespace pawl::test
