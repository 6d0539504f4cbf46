// SPDX-License-Identifier: Apache-2.0
// Who goes, who stays, and who is there already.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {

struct TentObserved {
  bool pitched = false;
};
struct TentDesired {};
struct TentTools {
  std::shared_ptr<bool> pitched;
};

/// Its way to rest ends with the words that nothing of it is left.
struct Tent : Worker<TentObserved, TentDesired, TentTools> {
  struct Packed : phase::Stopped {};
  struct Pitched : phase::Running {};
  struct Striking : phase::Stopping {};
  using States = pawl::States<Packed, Pitched, Striking>;
  struct Pitch {
    static Result<void> run(TentTools& tools, const TentDesired&, const ActionContext&) {
      *tools.pitched = true;
      return {};
    }
  };
  struct Strike {
    static Result<void> run(TentTools& tools, const TentDesired&, const ActionContext&) {
      *tools.pitched = false;
      return {};
    }
  };
  static Next<Go<Pitched>> next(Packed, const Snapshot&) { return Go<Pitched>{"it is wanted"}; }
  static Next<Stay, Do<Pitch>> next(Pitched, const Snapshot& now) {
    if (now.observed.pitched) return Stay{"it stands"};
    return Do<Pitch>{"it does not stand"};
  }
  static Next<Do<Strike>, Remove> next(Striking, const Snapshot& now) {
    if (!now.observed.pitched) return Remove{"nothing of it is left"};
    return Do<Strike>{"it stands"};
  }
  static Next<Go<Striking>> stop(Pitched, const Snapshot&) { return Go<Striking>{"it is to stop"}; }
  static Result<TentObserved> collect(TentTools& tools, const TentDesired&, const CollectContext&) {
    return TentObserved{*tools.pitched};
  }
};

namespace {

class TentWorld {
 public:
  TentWorld()
      : kit([this](Runtime&) {
          WorkerTypes types;
          types.add<Tent>([this](const WorkerIdentity&) { return ++made, TentTools{pitched}; });
          return types;
        }) {
    kit.supervisor().apply({.children = {{.name = "t", .worker_type = "tent"}}}).value();
    stands = kit.wait_until([this] { return *pitched; });
  }
  WorkerView show() { return kit.supervisor().show("t").value_or(WorkerView{}); }

  std::shared_ptr<bool> pitched = std::make_shared<bool>(false);
  int made = 0;
  bool stands = false;
  SupervisorKit kit;
};

TEST(EndOfStopping, AParkedWorkerThatSaysRemoveRestsAndCanRunAgain) {
  TentWorld world;
  ASSERT_TRUE(world.stands);
  world.kit.supervisor().park("t").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return !*world.pitched && world.show().state == "Packed"; }));
  world.kit.advance(1min);
  EXPECT_EQ(world.show().state, "Packed");
  world.kit.crash();
  EXPECT_EQ(world.show().state, "Packed");
  world.kit.supervisor().run("t").value();
  EXPECT_TRUE(world.kit.wait_until([&] { return *world.pitched; }));
}

TEST(EndOfStopping, ADrainedWorkerThatSaysRemoveIsThereAfterTheNextStart) {
  TentWorld world;
  ASSERT_TRUE(world.stands);
  EXPECT_TRUE(world.kit.supervisor().drain().clean);
  EXPECT_FALSE(*world.pitched);
  world.kit.restart();
  EXPECT_TRUE(world.kit.wait_until([&] { return *world.pitched; }));
}

TEST(EndOfStopping, ARestartedWorkerThatSaysRemoveBeginsANewIncarnation) {
  TentWorld world;
  ASSERT_TRUE(world.stands);
  world.kit.supervisor().restart("t", "somebody asked").value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show().incarnation == 2; }));
  EXPECT_TRUE(world.kit.wait_until([&] { return *world.pitched; }));
  EXPECT_EQ(world.made, 2);
  EXPECT_FALSE(world.show().restarting);
  EXPECT_EQ(world.kit.engine().read("worker_tent", "t").value().generation, 1);
}

TEST(EndOfStopping, ARemovedWorkerThatSaysRemoveIsGoneAndMayBeWantedAgain) {
  TentWorld world;
  ASSERT_TRUE(world.stands);
  world.kit.supervisor().remove("t").value();
  ASSERT_TRUE(world.kit.wait_for("t", ""));
  world.kit.supervisor().upsert({.name = "t", .worker_type = "tent"}).value();
  EXPECT_TRUE(world.kit.wait_until([&] { return *world.pitched; }));
}

// A parent whose children are about to be made.

bool is_live(LiftWorld& world, std::string_view path) {
  const auto found = world.kit.engine().read("worker_lift", path);
  return found && !found->finished;
}

TEST(Removal, AWorkerThatRemovesItselfWaitsForChildrenThatAreBeingMade) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("p")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  world.supervisor().upsert(lift("p", R"({"children": 2, "mode": "removes"})")).value();
  ASSERT_TRUE(world.comes_to("p", ""));
  for (const auto* child : {"p/c1", "p/c2"}) {
    EXPECT_EQ(world.kit.state(child), "");
    EXPECT_FALSE(is_live(world, child)) << child;
  }
  world.kit.crash();
  EXPECT_TRUE(world.kit.found().unknown.empty());
  world.supervisor().upsert(lift("p", R"({"children": 2})")).value();
  EXPECT_TRUE(world.comes_to("p", "Up"));
}

TEST(Removal, OfAParentThatManyPeopleWantAndDoNotWantLeavesNobodyBehind) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SupervisorKitOptions options;
    options.simulation.seed = seed;
    LiftWorld world(options);
    const auto people = world.kit.process().open_thread_pool("people", {.threads = 3, .queue = 3});
    for (int person = 0; person < 3; ++person) {
      ASSERT_TRUE(people->submit([&](std::stop_token) {
        for (int round = 0; round < 10; ++round) {
          (void)world.supervisor().upsert(lift("p", R"({"children": 3})"));
          (void)world.supervisor().remove("p");
        }
      }));
    }
    world.kit.advance(30s);
    EXPECT_EQ(world.supervisor().tree().size(), 0U) << "seed " << seed;
    for (const auto* child : {"p/c1", "p/c2", "p/c3"}) EXPECT_FALSE(is_live(world, child)) << "seed " << seed;
  }
}

TEST(Removal, OfManyChildrenAsksTheirParentForItsListOnceInAWhile) {
  static int asked;
  static Result<std::vector<ChildSpec>> (*children)(const void*, const UserSpec&);
  LiftWorld world({}, [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
    auto type = lift_type(lab, runtime, "crowd");
    children = type.children;
    type.children = [](const void* desired, const UserSpec& spec) {
      return ++asked, children(desired, spec);
    };
    types.add(std::move(type));
  });
  auto crowd = lift("p", R"({"children": 100})");
  crowd.worker_type = "crowd";
  world.supervisor().apply({.children = {crowd}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  crowd.user_spec.config = R"({"children": 1})";
  asked = 0;
  world.supervisor().upsert(crowd).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("p").children == 1; }));
  EXPECT_LE(asked, 3);
  EXPECT_EQ(world.show("p").child_paths, std::vector<std::string>{"p/c1"});
  EXPECT_TRUE(world.comes_to("p", "Up"));
}

TEST(Removal, LeavesTheOthersInOrderAndVisible) {
  LiftWorld world;
  world.supervisor().apply({.children = {lift("a"), lift("b"), lift("c"), lift("d")}}).value();
  ASSERT_TRUE(world.comes_to("d", "Up"));
  world.supervisor().remove("b").value();
  ASSERT_TRUE(world.comes_to("b", ""));
  EXPECT_EQ(world.supervisor().paths(), (std::vector<std::string>{"a", "c", "d"}));
  world.site("d").level = 0;
  EXPECT_TRUE(world.kit.wait_until([&] { return world.site("d").raises == 2; }));
  world.supervisor().remove("d").value();
  ASSERT_TRUE(world.comes_to("d", ""));
  world.supervisor().upsert(lift("b")).value();
  ASSERT_TRUE(world.comes_to("b", "Up"));
  EXPECT_EQ(world.supervisor().paths(), (std::vector<std::string>{"a", "b", "c"}));
}

// One that is there already under the path of a child.

void make_by_hand(LiftWorld& world, std::string_view key, const WorkerData& data) {
  (void)world.kit.engine()
      .commit(Transaction{}.operation({.kind = Operation::Kind::create,
                                       .machine = "worker_lift",
                                       .key = std::string(key),
                                       .json = encode(data).value()}))
      .value();
}

TEST(Adoption, AWorkerThatIsTheOneToBeMadeIsTakenOver) {
  LiftWorld world;
  const Time long_ago = sim::kEpoch - 24h;
  make_by_hand(world, "p/c1", {.name = "c1", .type = "lift", .parent = "p", .made_at = long_ago});
  world.supervisor()
      .apply({.children = {lift("p", R"({"children": 1, "child_config": "{\"level\": 3}"})")}})
      .value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  EXPECT_EQ(world.kit.state("p/c1"), "Up");
  EXPECT_EQ(world.site("p/c1").level, 3);  // it has got its specification
  EXPECT_EQ(world.show("p/c1").identity.created_at, long_ago);
}

TEST(Adoption, AnotherWorkerUnderTheSamePathIsAnErrorThatNamesBoth) {
  LiftWorld world;
  make_by_hand(world, "p/c1", {.name = "stranger", .type = "lift", .parent = "elsewhere"});
  world.supervisor().apply({.children = {lift("p", R"({"children": 1})")}}).value();
  ASSERT_TRUE(world.comes_to("p", "Up"));
  const auto lines = world.log.with("a child could not be created");
  ASSERT_FALSE(lines.empty());
  for (const auto* part : {"stranger", "elsewhere", "\"c1\"", "\"p\""})
    EXPECT_TRUE(lines.front().fields.at("error").contains(part)) << lines.front().fields.at("error");
  EXPECT_EQ(world.kit.state("p/c1"), "");
}

TEST(Removal, AWorkerThatIsAddedAgainHoldsItsActionsUntilAHungOneOfItsPredecessorReturns) {
  LiftWorld world(exact());
  world.site("a").hangs = true;
  world.supervisor().apply({.children = {lift("a")}}).value();
  ASSERT_TRUE(world.kit.wait_until([&] { return world.show("a").failures == 1; }, 60s));
  world.site("a").hangs = false;  // but the one that has begun does not return
  // Twice, because the one in between never gets to run an action.
  for (int round = 0; round < 2; ++round) {
    world.supervisor().remove("a").value();
    ASSERT_TRUE(world.comes_to("a", ""));
    world.supervisor().upsert(lift("a")).value();
    world.kit.advance(1min);
    EXPECT_EQ(world.site("a").most_raising, 1);
    EXPECT_EQ(world.site("a").raises, 1);
    EXPECT_NE(world.show("a").problem.find("has not returned"), std::string::npos) << world.show("a").problem;
  }
  world.site("a").fails = 1;  // the hung one, when it returns
  world.let_go();
  EXPECT_TRUE(world.comes_to("a", "Up"));
  EXPECT_EQ(world.site("a").raises, 2);
}

}  // namespace
}  // namespace pawl::test
