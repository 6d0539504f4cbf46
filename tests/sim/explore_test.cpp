// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "pawl/sim.hpp"
#include "tests/sim/scenarios.hpp"

namespace {

using namespace std::chrono_literals;
using pawl::sim::ExploreOptions;
using pawl::sim::Scenario;
using pawl::sim::Simulation;

ExploreOptions quiet(std::string name, std::uint64_t seeds) {
  ExploreOptions options;
  options.name = std::move(name);
  options.seeds = seeds;
  options.simulation.job_delay_max = 100ms;
  options.report = [](std::string_view) {};
  return options;
}

/// A scenario of everything that leaves traces: lanes, timers, jobs, waits, drift, faults, a crash.
void mixed_day(Simulation& sim) {
  sim.arm("step", pawl::sim::fail_with_ppm(300'000));
  sim.arm("step", pawl::sim::crash_at_hit(12));
  auto& a = sim.spawn("a");
  auto& b = sim.spawn("b");
  a.set_drift_ppm(-12'345);
  const auto lane_a = a.open_lane("lane");
  const auto lane_b = b.open_lane("lane");
  const auto workers = a.open_thread_pool("io", {.threads = 2});
  pawl::Gate gate;
  for (int i = 0; i < 6; ++i) {
    (void)workers->submit([&](std::stop_token) {
      (void)a.fault("step");
      (void)a.wait(gate, std::chrono::milliseconds(a.random() % 500));
      (void)a.fault("step");
    });
    lane_a->after(i * 70ms, [&] { lane_b->post([&] { b.jump_clock(1s); }); });
    lane_b->post([&] { lane_a->post([] {}); });
  }
  lane_b->after(300ms, [&] { gate.open(); });
  sim.run_until_idle();
}

std::pair<std::string, std::uint64_t> trace_of(std::uint64_t seed) {
  Simulation sim{{.seed = seed, .job_delay_max = 50ms, .trace_lines = 100'000}};
  mixed_day(sim);
  return {sim.trace(), sim.trace_hash()};
}

TEST(Determinism, TheSameSeedGivesTheSameTraceByteForByte) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(trace_of(seed), trace_of(seed));
}

TEST(Determinism, DifferentSeedsGiveDifferentTraces) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) hashes.insert(trace_of(seed).second);
  EXPECT_EQ(hashes.size(), 20U);
}

// A literal, so that it holds on other days, machines, compilers and with other options of the compiler. It
// changes only when the simulation itself is changed on purpose; then every seed anybody wrote down is void.
TEST(Determinism, TheTraceOfAFixedSeedNeverChanges) {
  const auto [trace, hash] = trace_of(42);
  EXPECT_EQ(hash, 13211577667623648384ULL) << trace;
}

TEST(Trace, KeepsTheLastLinesAndHashesAll) {
  Simulation few{{.trace_lines = 2}};
  Simulation none{{.trace_lines = 0}};
  for (const char* text : {"one", "two", "three"}) few.note(text), none.note(text);
  EXPECT_EQ(few.trace(), "(1 earlier lines)\n0 0.000000 two\n0 0.000000 three\n");
  EXPECT_EQ(none.trace(), "(3 earlier lines)\n");
  EXPECT_EQ(few.trace_hash(), none.trace_hash());
  few.note("four");
  EXPECT_NE(few.trace_hash(), none.trace_hash());
}

TEST(Explore, FindsNoViolationInTheCorrectScenarios) {
  for (const auto& scenario : {pawl::scenarios::counter, pawl::scenarios::lease}) {
    const auto summary = explore(quiet("correct", 50), scenario);
    EXPECT_EQ(summary.seeds, 50U);
    EXPECT_GT(summary.crash_points, 0U);
    EXPECT_EQ(summary.violations, 0U) << summary.first_violation;
  }
}

void expect_found_and_replayed(const Scenario& scenario, std::string_view message) {
  const auto found = explore(quiet("broken", 200), scenario);
  ASSERT_GT(found.violations, 0U);
  EXPECT_NE(found.first_violation.find(message), std::string::npos) << found.first_violation;
  EXPECT_NE(found.first_violation.find("replay: build/release/tests/pawl_sim --scenario broken --seed " +
                                       std::to_string(found.first_bad_seed) + "\n"),
            std::string::npos)
      << found.first_violation;

  auto again = quiet("broken", 1);
  again.first_seed = found.first_bad_seed;
  EXPECT_EQ(explore(again, scenario).first_violation, found.first_violation);
}

TEST(Explore, FindsTheCounterThatAnswersEarlyAndReplaysIt) {
  expect_found_and_replayed(pawl::scenarios::counter_that_answers_early,
                            "an acknowledged increment was lost");
}

TEST(Explore, FindsTheLeaseWithoutMarginAndReplaysIt) {
  expect_found_and_replayed(pawl::scenarios::lease_without_margin, "both own the lease");
}

TEST(Explore, CrashesAtEveryPointOfASeedAndNamesThePointInTheCommand) {
  const auto scenario = [](Simulation& sim) -> pawl::Result<void> {
    auto& node = sim.spawn("node");
    int passed = 0;
    node.attempt([&] {
      for (; passed < 4; ++passed) (void)node.fault("point");
    });
    sim.require(passed != 2, "crashed between the second and the third");
    return {};
  };
  auto options = quiet("points", 1);
  options.crash_everywhere = 1;
  const auto summary = explore(options, scenario);
  EXPECT_EQ(summary.crash_points, 4U);
  EXPECT_EQ(summary.violations, 1U);
  EXPECT_NE(summary.first_violation.find("--scenario points --seed 1 --crash-at 3\n"), std::string::npos)
      << summary.first_violation;

  options.crash_everywhere = 0;
  options.simulation.crash_at = 3;
  EXPECT_EQ(explore(options, scenario).first_violation, summary.first_violation);
}

TEST(Explore, CountsEveryKindOfFailureAsAViolation) {
  const auto message_of = [](const Scenario& scenario) {
    return explore(quiet("failing", 1), scenario).first_violation;
  };
  EXPECT_NE(
      message_of([](Simulation&) { return pawl::fail(pawl::Code::internal, "returned"); }).find("returned"),
      std::string::npos);
  EXPECT_NE(message_of([](Simulation&) -> pawl::Result<void> {
              throw std::runtime_error("thrown");
            }).find("thrown"),
            std::string::npos);
  EXPECT_NE(message_of([](Simulation& sim) -> pawl::Result<void> {
              auto& node = sim.spawn("node");
              pawl::Gate never;
              node.wait(never);
              return {};
            }).find("deadlock"),
            std::string::npos);
  EXPECT_NE(message_of([](Simulation& sim) -> pawl::Result<void> {
              auto& node = sim.spawn("node");
              node.open_lane("lane");
              sim.crash_at(1);
              return node.fault("point"), pawl::Result<void>{};
            }).find("Process::attempt"),
            std::string::npos);
}

TEST(Explore, ReportsAFailureThatADestructorHadToHoldBack) {
  const auto summary = explore(quiet("teardown", 1), [](Simulation& sim) -> pawl::Result<void> {
    auto& node = sim.spawn("node");
    pawl::Gate gate;
    const auto workers = node.open_thread_pool("io", {});
    (void)workers->submit([&](std::stop_token) {
      node.wait(gate, 1s);
      sim.require(false, "too late");
    });
    sim.run_for(500ms);
    return {};
  });
  EXPECT_NE(summary.first_violation.find("too late"), std::string::npos) << summary.first_violation;
}

TEST(Explore, ReportsTheFirstViolationsAndCountsTheRest) {
  auto options = quiet("always", 10);
  int reports = 0;
  options.reports = 2;
  options.report = [&](std::string_view) { ++reports; };
  const auto summary =
      explore(options, [](Simulation&) { return pawl::fail(pawl::Code::internal, "always"); });
  EXPECT_EQ(summary.violations, 10U);
  EXPECT_EQ(reports, 2);
}

}  // namespace
