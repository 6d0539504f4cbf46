// SPDX-License-Identifier: Apache-2.0
// The tools for tests of workers: virtual time, crashes, traces, and idempotent actions.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

struct Shelf {
  std::vector<std::string> boxes;
  int count = 0;
  std::string text() const {
    std::string all = std::to_string(count);
    for (const auto& box : boxes) all += " " + box;
    return all;
  }
};
struct ShelfTools {
  Shelf* shelf = nullptr;
  FaultPoints* points = nullptr;
};
struct ShelfDesired {};

/// Each effect is looked at before it is made.
struct Careful {
  static Result<void> run(ShelfTools& tools, const ShelfDesired&, const ActionContext&) {
    for (const auto* box : {"a", "b"}) {
      if (std::ranges::find(tools.shelf->boxes, box) != tools.shelf->boxes.end()) continue;
      tools.points->reach();
      tools.shelf->boxes.emplace_back(box);
    }
    return {};
  }
};
struct Counts {
  static Result<void> run(ShelfTools& tools, const ShelfDesired&, const ActionContext&) {
    tools.points->reach();
    ++tools.shelf->count;
    return {};
  }
};
/// Takes the first effect for all of them: right when it is run again, wrong when it was cut off.
struct HalfDone {
  static Result<void> run(ShelfTools& tools, const ShelfDesired&, const ActionContext&) {
    if (!tools.shelf->boxes.empty()) return {};
    for (const auto* box : {"a", "b"}) {
      tools.points->reach();
      tools.shelf->boxes.emplace_back(box);
    }
    return {};
  }
};
struct Refuses {
  static Result<void> run(ShelfTools&, const ShelfDesired&, const ActionContext&) {
    return fail(Code::process_failed, "no");
  }
};

template <class Action>
IdempotencyReport verify_on_shelf() {
  Shelf shelf;
  return verify_idempotent<Action, ShelfTools, ShelfDesired>({.make =
                                                                  [&shelf](FaultPoints& points) {
                                                                    shelf = {};
                                                                    return std::make_shared<ShelfTools>(
                                                                        ShelfTools{&shelf, &points});
                                                                  },
                                                              .observe = [&shelf] { return shelf.text(); }});
}

TEST(Idempotency, AnIdempotentActionPassesAlsoWhereItWasCutOff) {
  const auto report = verify_on_shelf<Careful>();
  EXPECT_EQ(report.violations, std::vector<std::string>{});
  EXPECT_EQ(report.steps, 2U);
  EXPECT_EQ(report.once, "0 a b");
}

TEST(Idempotency, ACounterIsFound) {
  const auto report = verify_on_shelf<Counts>();
  ASSERT_FALSE(report.violations.empty());
  EXPECT_NE(report.violations.front().find("again: 2 instead of 1"), std::string::npos);
}

TEST(Idempotency, AnActionThatTrustsItsFirstHalfIsFoundByCuttingItOff) {
  const auto report = verify_on_shelf<HalfDone>();
  ASSERT_EQ(report.violations.size(), 1U);
  EXPECT_NE(report.violations.front().find("after a cut at step 2: 0 a instead of 0 a b"), std::string::npos)
      << report.violations.front();
}

TEST(Idempotency, AnActionThatFailsIsReported) {
  EXPECT_EQ(verify_on_shelf<Refuses>().violations.size(), 3U);
}

TEST(Traces, EveryDecisionCanBeStoredAndDecidedAgain) {
  std::vector<TraceEntry> trace;
  SupervisorKitOptions options;
  options.supervisor.trace = [&trace](const TraceEntry& entry) { trace.push_back(entry); };
  LiftWorld world(options);
  world.site("p/c1").fails = 2;
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 2})"), lift("t", R"({"mode": "throws"})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().apply({}).value();
  ASSERT_TRUE(world.comes_to("p", ""));
  ASSERT_GE(trace.size(), 15U);
  std::set<std::string> kinds;
  for (const auto& entry : trace) {
    const auto stored = encode(entry).value();
    const auto read = decode<TraceEntry>(stored).value();
    const auto again = replay(world.supervisor().types(), read);
    EXPECT_TRUE(again) << again.error().to_string();
    kinds.insert(entry.result.substr(0, entry.result.find(' ')));
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"go", "do", "error", "stay:"}));
}

TEST(Traces, AnotherResultIsReportedWithBoth) {
  std::vector<TraceEntry> trace;
  SupervisorKitOptions options;
  options.supervisor.trace = [&trace](const TraceEntry& entry) { trace.push_back(entry); };
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  auto changed = *std::ranges::find(trace, std::string("a"), &TraceEntry::path);
  changed.result = "go Up: by magic";
  const auto again = replay(world.supervisor().types(), changed);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::internal);
  EXPECT_NE(again.error().to_string().find("by magic"), std::string::npos);
  EXPECT_NE(again.error().to_string().find("it is wanted"), std::string::npos);
  changed.type = "nobody";
  EXPECT_EQ(replay(world.supervisor().types(), changed).error().code(), Code::unknown_worker_type);
}

TEST(Traces, TwoRunsOfOneSeedDecideTheSame) {
  const auto run = [](std::uint64_t seed) {
    std::vector<std::string> results;
    SupervisorKitOptions options;
    options.simulation.seed = seed;
    options.simulation.job_delay_max = 50ms;
    options.supervisor.trace = [&results](const TraceEntry& entry) {
      results.push_back(encode(entry).value());
    };
    LiftWorld world(options);
    world.site("p/c2").fails = 3;
    world.supervisor().apply({.children = {lift("p", R"({"children": 3})")}}).value();
    EXPECT_TRUE(world.comes_to("p", "Up"));
    world.kit.crash();
    world.kit.advance(10s);
    return results;
  };
  EXPECT_EQ(run(7), run(7));
}

TEST(SupervisorKit, AnotherReleaseThatDoesNotKnowATypeTouchesNoWorker) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p", R"({"children": 2})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.kit.crash_and_change([](Runtime&) { return WorkerTypes{}; });
  world.kit.advance(1min);
  EXPECT_EQ(world.supervisor().tree().size(), 0U);
  world.kit.crash_and_change(world.setup());
  world.kit.advance(1min);
  EXPECT_EQ(world.supervisor().tree().size(), 3U);
  EXPECT_EQ(world.kit.state("p"), "Up");
  EXPECT_EQ(world.site("p/c1").raises, 1);
  EXPECT_EQ(world.site("p/c1").lowers, 0);
}

TEST(SupervisorKit, WhoseTypeIsUnknownIsReportedAndOthersGoOn) {
  LiftWorld world;
  const auto both = [&world](Runtime& runtime) {
    auto types = world.setup()(runtime);
    types.add(lift_type(world.lab, runtime, "hoist"));
    return types;
  };
  world.kit.crash_and_change(both);
  auto hoist = lift("h");
  hoist.worker_type = "hoist";
  world.supervisor().apply({.children = {lift("a"), hoist}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  ASSERT_TRUE(world.comes_to("h", "Up"));
  world.kit.crash_and_change(world.setup());
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.found().unknown, std::vector<std::string>{"h"});
  EXPECT_EQ(world.kit.state("a"), "Up");
  world.site("a").level = 0;
  EXPECT_TRUE(world.kit.wait_until([&] { return world.site("a").level == 1; }));
  world.kit.crash_and_change(both);
  world.kit.advance(10s);
  EXPECT_EQ(world.kit.state("h"), "Up");
  EXPECT_EQ(world.site("h").raises, 1);
}

TEST(SupervisorKit, AnHourTakesNoTimeAndAStateCanBeWaitedForInVain) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a")}}).value();
  EXPECT_FALSE(world.kit.wait_for("a", "Sagging", 1h));
  EXPECT_EQ(world.kit.state("nobody"), "");
}

TEST(SupervisorKit, AStrictSupervisorAsksEveryWorkerAtEachTick) {
  SupervisorKitOptions options;
  options.supervisor.strict = true;
  LiftWorld world(options);
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto before = world.supervisor().stats().decisions;
  world.kit.advance(10s);
  EXPECT_GE(world.supervisor().stats().decisions - before, 100U);
}

TEST(SupervisorKit, AStateThatWantsToBeAskedAgainIs) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a", R"({"mode": "asks again"})")}}).value();
  ASSERT_TRUE(world.comes_to("a", "Up"));
  const auto before = world.supervisor().stats().decisions;
  world.kit.advance(10s);
  EXPECT_GE(world.supervisor().stats().decisions - before, 18U);
}

}  // namespace
}  // namespace pawl::test
