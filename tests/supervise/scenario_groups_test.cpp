// SPDX-License-Identifier: Apache-2.0
// The acceptance scenarios of parents: simple, cascade, configerror, inheritance, disabled child, despawn,
// dynamic and drain.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/supervise/examples.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

struct Step {
  std::string path;
  std::string to;
};

/// The moves of all workers, in the order in which they became durable.
std::vector<Step> steps_of(ExampleWorld& world) {
  std::map<std::int64_t, Step> found;
  for (const auto& view : world.kit.supervisor().tree()) {
    const auto history =
        world.kit.engine().history("worker_" + view.identity.type, view.identity.path, 0, 1000).value();
    for (const auto& event : history.events) {
      if (event.event == "Moved") found[event.seq] = {view.identity.path, event.state};
    }
  }
  std::vector<Step> steps;
  for (auto& [_, step] : found) steps.push_back(std::move(step));
  return steps;
}

std::size_t place_of(const std::vector<Step>& steps, std::string_view path, std::string_view to,
                     std::size_t from = 0) {
  for (auto at = from; at < steps.size(); ++at) {
    const bool meant = path.ends_with('-') ? steps[at].path.starts_with(path) : steps[at].path == path;
    if (meant && steps[at].to == to) return at;
  }
  return steps.size();
}

TEST(Scenario, Simple) {
  ExampleWorld world;
  auto parent = example("parent", "parent", R"({"children_count": 2, "wait_ms": 500, "run_ms": 4000,
      "child_config": "{\"address\": \"{{ "{{" }} .IP }}:{{ "{{" }} .PORT }}\"}"})");
  parent.user_spec.variables.user = {{"IP", {R"("127.0.0.1")"}}, {"PORT", {"8080"}}};
  world.apply({parent});
  world.kit.advance(20s);
  EXPECT_EQ(world.kit.supervisor().stats().workers, 3U);
  EXPECT_EQ(world.kit.supervisor().stats().actions_failed, 0U);
  EXPECT_EQ(world.kit.supervisor().stats().config_errors, 0U);
  const auto steps = steps_of(world);
  const auto starts = place_of(steps, "parent", "TryingToStart");
  const auto connects = place_of(steps, "parent/child-", "TryingToConnect");
  const auto runs = place_of(steps, "parent", "Running", starts);
  const auto stops = place_of(steps, "parent", "TryingToStop", runs);
  const auto child_stops = place_of(steps, "parent/child-", "TryingToStop");
  const auto child_rests = place_of(steps, "parent/child-", "Stopped", child_stops);
  const auto rests = place_of(steps, "parent", "Stopped", stops);
  const auto again = place_of(steps, "parent", "TryingToStart", rests);
  EXPECT_LT(starts, connects);
  EXPECT_LT(connects, runs);
  EXPECT_LT(runs, stops);
  EXPECT_LT(stops, child_stops);
  EXPECT_LT(child_stops, child_rests);
  EXPECT_LT(child_rests, rests);
  EXPECT_LT(rests, again);
  EXPECT_LT(again, steps.size());
  EXPECT_TRUE(world.kit.supervisor().drain().clean);
  for (const auto& view : world.kit.supervisor().tree()) {
    EXPECT_EQ(view.state, "Stopped") << view.identity.path;
    EXPECT_LE(*view.observed_ago, 3s);
    const auto stored = world.kit.engine().read("worker_" + view.identity.type, view.identity.path).value();
    EXPECT_EQ(stored.key, view.identity.path);
  }
  EXPECT_NE(world.show("parent/child-1").desired.text.find("127.0.0.1:8080"), std::string::npos);
  // What was logged of it.
  std::vector<std::string> added;
  for (const auto& line : world.log.with("a worker is added")) added.push_back(line.fields.at("worker"));
  EXPECT_EQ(added, (std::vector<std::string>{"parent", "parent/child-1", "parent/child-2"}));
  EXPECT_EQ(world.log.warnings(), std::vector<std::string>{});
  for (const auto& line : world.log.lines()) EXPECT_TRUE(line.fields.contains("worker")) << line.message;
  for (const auto& line : world.log.with("a worker has moved")) {
    for (const auto* key : {"from", "to", "reason"}) EXPECT_FALSE(line.fields.at(key).empty()) << key;
  }
}

TEST(Scenario, Cascade) {
  ExampleWorld world;
  world.apply({example("parent", "parent", R"({"children_count": 2, "child_config":
      "{\"max_failures\": 3, \"failure_cycles\": 2, \"recovery_delay_observations\": 3}"})")});
  ASSERT_TRUE(world.kit.wait_for("parent", "Running", 30s));
  EXPECT_EQ(world.show("parent").children_healthy, 2U);
  ASSERT_TRUE(world.kit.wait_for("parent", "Degraded", 30s));
  EXPECT_LT(world.show("parent").children_healthy, 2U);
  ASSERT_TRUE(world.kit.wait_for("parent", "Running", 30s));
  for (const auto* child : {"parent/child-1", "parent/child-2"}) {
    EXPECT_TRUE(world.kit.wait_for(child, "Connected", 30s));
    EXPECT_EQ(world.outside.links[child].attempts.size(), 6U) << child;
  }
}

TEST(Scenario, Configerror) {
  ExampleWorld world;
  world.apply({example("valid", "parent", R"({"children_count": 2})"),
               example("mismatch", "parent", R"({"children_count": "not-a-number"})"),
               example("empty", "parent", ""), example("failing", "child", R"({"max_failures": "three"})")});
  ASSERT_TRUE(world.kit.wait_for("valid", "Running", 10s));
  world.kit.advance(10s);
  EXPECT_EQ(world.show("valid").children, 2U);
  EXPECT_EQ(world.show("mismatch").children, 0U);
  EXPECT_EQ(world.show("mismatch").health, Health::config_error);
  EXPECT_NE(world.show("mismatch").problem.find("children_count"), std::string::npos)
      << world.show("mismatch").problem;
  EXPECT_EQ(world.show("empty").children, 0U);
  EXPECT_EQ(world.kit.state("empty"), "Running");
  EXPECT_EQ(world.show("failing").health, Health::config_error);
  EXPECT_NE(world.show("failing").problem.find("max_failures"), std::string::npos);
  EXPECT_EQ(world.kit.supervisor().stats().config_errors, 2U);  // each is found once, not at every tick
}

TEST(Scenario, Inheritance) {
  ExampleWorld world;
  auto parent = example("parent", "parent", R"({"children_count": 2, "child_config":
  "{\"address\": \"{{ "{{" }} .IP }}:{{ "{{" }} .PORT }}\", \"device\": \"{{ "{{" }} .DEVICE_ID }}\"}"})");
  parent.user_spec.variables.user = {{"IP", {R"("10.0.0.7")"}},
                                     {"PORT", {"502"}},
                                     {"CONNECTION_NAME", {R"("plc")"}},
                                     {"DEVICE_ID", {R"("the parent's")"}}};
  world.apply({parent});
  ASSERT_TRUE(world.kit.wait_for("parent", "Running", 10s));
  for (const auto* number : {"1", "2"}) {
    const auto child = world.show(std::string("parent/child-") + number);
    const auto& user = child.spec.variables.user;
    EXPECT_EQ(user.at("IP").text, R"("10.0.0.7")");
    EXPECT_EQ(user.at("PORT").text, "502");
    EXPECT_EQ(user.at("CONNECTION_NAME").text, R"("plc")");
    EXPECT_EQ(user.at("DEVICE_ID").text, std::string("\"device-") + number + "\"");  // the child's own wins
    EXPECT_NE(child.desired.text.find("10.0.0.7:502"), std::string::npos);
    EXPECT_NE(child.desired.text.find(std::string("device-") + number), std::string::npos);
  }
}

TEST(Scenario, DisabledChild) {
  ExampleWorld world;
  auto disabled = example("hello", "helloworld");
  disabled.enabled = false;
  world.apply({disabled});
  world.kit.advance(30s);
  EXPECT_EQ(world.kit.state("hello"), "Stopped");
  EXPECT_EQ(world.outside.links["hello"].greetings, 0);
  EXPECT_TRUE(world.kit.moves("hello").empty());  // it does not flap
}

TEST(Scenario, Despawn) {
  ExampleWorld world;
  world.apply({example("parent", "parent", R"({"children_count": 1})")});
  ASSERT_TRUE(world.kit.wait_for("parent/child-1", "Connected", 10s));
  world.apply({example("parent", "parent", R"({"children_count": 0})")});
  ASSERT_TRUE(world.kit.wait_for("parent/child-1", "", 10s));
  EXPECT_FALSE(world.outside.links["parent/child-1"].connected);
  EXPECT_EQ(world.kit.state("parent"), "Running");
}

TEST(Scenario, Dynamic) {
  ExampleWorld world;
  auto& supervisor = world.kit.supervisor();
  world.apply({example("kernel", "helloworld")});
  ASSERT_TRUE(world.kit.wait_for("kernel", "Running", 10s));
  supervisor.upsert(example("w", "child", R"({"address": "first"})")).value();
  ASSERT_TRUE(world.kit.wait_for("w", "Connected", 10s));
  supervisor.upsert(example("w", "child", R"({"address": "second"})")).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("w").desired.text.contains("second"); }, 1s));
  supervisor.remove("w").value();
  ASSERT_TRUE(world.kit.wait_for("w", "", 10s));
  for (int round = 0; round < 3; ++round) {
    for (const auto* name : {"x", "y", "z"}) supervisor.upsert(example(name, "child")).value();
    world.kit.advance(700ms);
    for (const auto* name : {"x", "y", "z"}) supervisor.remove(name).value();
  }
  ASSERT_TRUE(world.kit.wait_until([&] { return supervisor.tree().size() == 1; }, 30s));
  EXPECT_EQ(world.kit.state("kernel"), "Running");
  EXPECT_EQ(world.kit.moves("kernel"), (std::vector<std::string>{"TryingToStart", "Running"}));
}

TEST(Scenario, Drain) {
  ExampleWorld world;
  world.apply({example("top", "parent", R"({"children_count": 2, "child_worker_type": "parent",
                                           "child_config": "{\"children_count\": 2}"})")});
  ASSERT_TRUE(world.kit.wait_for("top", "Running", 30s));
  ASSERT_EQ(world.kit.supervisor().tree().size(), 7U);
  const auto began = world.kit.simulation().elapsed();
  const auto report = world.kit.supervisor().drain(5s);
  EXPECT_TRUE(report.clean) << report.cut.size();
  EXPECT_LT(world.kit.simulation().elapsed() - began, 15s);
  for (const auto& [path, link] : world.outside.links) EXPECT_FALSE(link.connected) << path;
  EXPECT_EQ(world.log.warnings(), std::vector<std::string>{});
}

}  // namespace
}  // namespace pawl::test
