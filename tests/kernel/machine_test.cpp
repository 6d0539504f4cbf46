// SPDX-License-Identifier: Apache-2.0
#include "pawl/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "pawl/definition.hpp"
#include "pawl/fire.hpp"
#include "pawl/verify.hpp"

namespace {

using pawl::Code;
using pawl::Verdict;
using testing::ElementsAre;

enum class Door { closed, open, locked };
struct Push {
  int force = 1;
};
struct Pull {};
struct Knock {};
struct TurnKey {
  std::string key;
};
struct Visits {
  int opened = 0;
  int knocks = 0;
  std::string last_key;
};

void count_knock(Visits& log) { ++log.knocks; }

constexpr auto door =
    pawl::machine<Door, Visits>("door")
        .initial(Door::closed)
        .on<Push>(Door::closed, Door::open, [](Visits& log, const Push& push) { log.opened += push.force; })
        .on<Pull>(Door::open, Door::closed)
        .stay<Knock>(pawl::from(Door::closed, Door::open), pawl::call<&count_knock>)
        .on<TurnKey>(Door::closed, Door::locked, pawl::when([](const Visits& log, const TurnKey& turn) {
                       return turn.key != log.last_key;
                     }))
        .terminal(Door::locked);
static_assert(pawl::verified<door>);

TEST(Machine, FiringChangesTheStateAndTheData) {
  pawl::Local<door> front;
  ASSERT_TRUE(front.send(Push{.force = 3}));
  EXPECT_EQ(front.state(), Door::open);
  EXPECT_EQ(front.data().opened, 3);
}

TEST(Machine, AnIllegalEventIsRefusedWithTheLegalOnesAndChangesNothing) {
  pawl::Local<door> front;
  const auto result = front.send(Pull{});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::illegal_event);
  EXPECT_EQ(result.error().message(), "door is closed: it does not accept Pull; legal: Push, Knock, TurnKey");
  EXPECT_EQ(front.state(), Door::closed);
}

TEST(Machine, AGuardMayRefuse) {
  pawl::Local<door> front(Visits{.last_key = "k"});
  EXPECT_EQ(front.send(TurnKey{"k"}).error().code(), Code::guard_refused);
  EXPECT_EQ(front.state(), Door::closed);
  EXPECT_TRUE(front.send(TurnKey{"other"}));
  EXPECT_TRUE(front.finished());
}

TEST(Machine, AFinishedInstanceAcceptsNothing) {
  pawl::Local<door> front(Visits{}, Door::locked);
  EXPECT_EQ(front.send(Push{}).error().code(), Code::finished_instance);
}

TEST(Machine, AnInternalTransitionUpdatesAndStays) {
  pawl::Local<door> front(Visits{}, Door::open);
  ASSERT_TRUE(front.send(Knock{}));
  EXPECT_EQ(front.state(), Door::open);
  EXPECT_EQ(front.data().knocks, 1);
}

enum class Barrier { shut, low, high, done };
struct Flow {
  int passed = 0;
};
struct Water {
  int level = 0;
};
constexpr auto gate =
    pawl::machine<Barrier, Flow>("gate")
        .initial(Barrier::shut)
        .on<Water>(Barrier::shut, Barrier::high,
                   pawl::when([](const Flow&, const Water& water) { return water.level > 9; }))
        .on<Water>(Barrier::shut, Barrier::low,
                   pawl::when([](const Flow&, const Water& water) { return water.level > 4; }))
        .on<Water>(Barrier::shut, Barrier::done)
        .on<Pull>(pawl::from(Barrier::low, Barrier::high), Barrier::done)
        .terminal(Barrier::done);
static_assert(pawl::verified<gate>);

TEST(Machine, GuardsAreTriedInTheOrderTheyAreWritten) {
  const auto after = [](int level) {
    pawl::Local<gate> it;
    (void)it.send(Water{level});
    return it.state();
  };
  EXPECT_EQ(after(10), Barrier::high);
  EXPECT_EQ(after(5), Barrier::low);
  EXPECT_EQ(after(4), Barrier::done);
}

TEST(Machine, FiringIsPossibleWhileCompiling) {
  constexpr auto walk = [] {
    auto state = Barrier::low;
    Flow data;
    return pawl::fire<gate>(state, data, Pull{}) == Verdict::fired && state == Barrier::done;
  };
  static_assert(walk());
  EXPECT_TRUE(walk());
}

struct LogV1 {
  int opens = 0;
};
struct LogV2 {
  int opened = 0;
};
struct Boom {};
constexpr auto versioned =
    pawl::machine<Door, Visits>("versioned")
        .formerly("ancient")
        .initial(Door::closed)
        .named(Door::open, "OPEN")
        .formerly(Door::open, "ajar")
        .named<Push>("push")
        .formerly<Push>("shove")
        .on<Push>(Door::closed, Door::open)
        .on<TurnKey>(Door::open, Door::locked)
        .on<Boom>(Door::open, Door::locked, [] { throw std::runtime_error("boom"); })
        .terminal(Door::locked)
        .recover(Door::open, Door::closed)
        .generations()
        .upgrade<1>([](const LogV1& old) { return LogV2{old.opens}; })
        .upgrade<2>([](const LogV2& old) { return Visits{.opened = old.opened, .last_key = "?"}; });
static_assert(pawl::verified<versioned>);

TEST(Definition, FindsStatesAndEventsByPresentAndFormerNames) {
  const auto definition = pawl::define<versioned>();
  EXPECT_EQ(definition.find_state("OPEN").value(), 1U);
  EXPECT_EQ(definition.find_state("ajar").value(), 1U);
  EXPECT_EQ(definition.find_event("push").value(), 0U);
  EXPECT_EQ(definition.find_event("shove").value(), 0U);
  EXPECT_THAT(definition.former_names, ElementsAre("ancient"));
}

TEST(Definition, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto definition = pawl::define<versioned>();
  EXPECT_EQ(definition.find_state("open").error().message(),
            "versioned has no state \"open\"; known: closed, OPEN, locked");
  EXPECT_EQ(definition.find_event("Push").error().code(), Code::unknown_event);
}

TEST(Definition, FiresWithJsonByStoredNames) {
  const auto definition = pawl::define<door>();
  const auto& push = definition.events[definition.find_event("Push").value()];
  const auto step = push.fire_json(0, {"{}"}, R"({"force":2})", nullptr).value();
  EXPECT_EQ(step.verdict, Verdict::fired);
  EXPECT_EQ(definition.states[step.state].name, "open");
  EXPECT_EQ(step.data, R"({"opened":2,"knocks":0,"last_key":""})");
}

TEST(Definition, APayloadThatDoesNotDecodeIsRefusedWithItsPath) {
  const auto definition = pawl::define<door>();
  const auto step = definition.events[0].fire_json(0, {"{}"}, R"({"force":"hard"})", nullptr);
  EXPECT_EQ(step.error().message(), "$.force: expected integer, got string");
}

TEST(Definition, WhatADecisionThrowsBecomesAnError) {
  const auto definition = pawl::define<versioned>();
  const auto step =
      definition.events[definition.find_event("Boom").value()].fire_json(1, {"{}"}, "{}", nullptr);
  EXPECT_EQ(step.error().code(), Code::decision_threw);
}

TEST(Definition, OldDataIsUpgradedStepByStep) {
  const auto definition = pawl::define<versioned>();
  EXPECT_EQ(definition.schema, 3);
  EXPECT_EQ(definition.upgrade(R"({"opens":7})", 1).value(), R"({"opened":7,"knocks":0,"last_key":"?"})");
  EXPECT_EQ(definition.upgrade("{}", 3).value(), "{}");
  EXPECT_EQ(definition.upgrade("{}", 4).error().code(), Code::unsupported_schema);
}

TEST(Definition, CarriesRecoveryAndGenerations) {
  const auto definition = pawl::define<versioned>();
  EXPECT_TRUE(definition.generations);
  EXPECT_EQ(definition.states[1].recovers_to, 0U);
  EXPECT_EQ(definition.states[0].recovers_to, std::nullopt);
}

TEST(Definition, ListsTheLegalEventsOfAState) {
  const auto definition = pawl::define<door>();
  EXPECT_THAT(definition.legal_events(0), ElementsAre("Push", "Knock", "TurnKey"));
  EXPECT_THAT(definition.legal_events(2), ElementsAre());
}

TEST(Diagram, MermaidShowsEveryTransition) {
  EXPECT_EQ(pawl::to_mermaid(pawl::define<door>()),
            "stateDiagram-v2\n"
            "    [*] --> closed\n"
            "    closed --> open: Push\n"
            "    open --> closed: Pull\n"
            "    closed --> closed: Knock (stays)\n"
            "    open --> open: Knock (stays)\n"
            "    closed --> locked: TurnKey [guarded]\n"
            "    locked --> [*]\n");
}

TEST(Diagram, MermaidShowsCountsWhereGiven) {
  EXPECT_THAT(pawl::to_mermaid(pawl::define<door>(), {{"open", 12}}),
              testing::HasSubstr("    open: open (12)\n"));
}

TEST(Diagram, DotMarksTerminalStates) {
  const auto dot = pawl::to_dot(pawl::define<door>());
  EXPECT_THAT(dot, testing::HasSubstr("\"locked\" [shape=doublecircle];"));
  EXPECT_THAT(dot, testing::HasSubstr("\"closed\" -> \"open\" [label=\"Push\"];"));
}

TEST(Diagram, JsonIsReadable) {
  struct Read {
    std::string name;
    std::string initial;
    std::vector<std::string> events;
  };
  const auto read = pawl::decode<Read>(pawl::to_json(pawl::define<door>())).value();
  EXPECT_EQ(read.name, "door");
  EXPECT_EQ(read.initial, "closed");
  EXPECT_THAT(read.events, ElementsAre("Push", "Pull", "Knock", "TurnKey"));
}

}  // namespace
