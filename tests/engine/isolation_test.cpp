// SPDX-License-Identifier: Apache-2.0
// Invalid input of one machine, handler or caller is refused without affecting others in the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/atomic.hpp"
#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::isolation {
namespace {

constexpr const char* kNotText = "\xff\xfe";

enum class Note { open, closed };
struct NameTimer {};
struct Address {};
struct Enclose {};
struct Later {};
struct LaterDone {};
struct Half {};
struct HalfLater {};

constexpr auto note =
    machine<Note, Total>("note")
        .initial(Note::open)
        .stay<NameTimer>(Note::open, [](Total&, const NameTimer&,
                                        Effects& effects) { effects.set_timer(kNotText, 1h, Close{}); })
        .stay<Address>(Note::open, [](Total&, const Address&,
                                      Effects& effects) { effects.send<counter>(kNotText, Add{1}); })
        .stay<Enclose>(
            Note::open,
            [](Total&, const Enclose&, Effects& effects) {
              effects.send({.machine = "counter", .key = "c", .event = "Add", .payload = kNotText});
            })
        .stay<Half>(Note::open,
                    [](Total&, const Half&, Effects& effects) {
                      effects.set_timer("reminder", 1h, Close{});
                      effects.sql({.text = "INSERT INTO noted(what) VALUES(?1)", .rows = {{"half"}}});
                      effects.set_timer(kNotText, 1h, Close{});
                    })
        .stay<HalfLater>(Note::open, [](Total&, const HalfLater&,
                                        Effects& effects) { effects.set_timer("half", 1s, Half{}); })
        .stay<Later>(Note::open, [](Total&, const Later&,
                                    Effects& effects) { effects.set_timer("later", 1s, NameTimer{}); })
        .on<Close>(Note::open, Note::closed)
        .terminal(Note::closed);
static_assert(verified<note>);

Machines notes() {
  Machines machines;
  machines.add<counter>().add<note>();
  return machines;
}

class IsolationTest : public testing::Test {
 protected:
  IsolationTest() {
    EXPECT_TRUE(world->create<counter>("c"));
    EXPECT_TRUE(world->create<note>("n"));
  }
  /// Sends the event among others in one batch; returns its error.
  template <class E>
  Code refused_beside_others(const E& event) {
    std::vector<Code> codes;
    const auto hear = [&](const auto& outcome) { codes.push_back(code_of(outcome)); };
    world->submit(Transaction{}.send<counter>("c", Add{1}), hear);
    world->submit(Transaction{}.send<note>("n", event), hear);
    world->submit(Transaction{}.send<counter>("c", Add{1}), hear);
    world.simulation().run_until([&] { return codes.size() == 3; });
    EXPECT_EQ(codes[0], Code{});
    EXPECT_EQ(codes[2], Code{});
    EXPECT_EQ(world->get<counter>("c").value().data.sum, 2);
    return codes[1];
  }

  World world{notes, {.schema = {{.text = "CREATE TABLE IF NOT EXISTS noted(what TEXT)"}}}};
};

TEST_F(IsolationTest, ATimerWhoseNameIsNotTextIsRefusedToItsCallerAlone) {
  EXPECT_EQ(refused_beside_others(NameTimer{}), Code::invalid_argument);
}

TEST_F(IsolationTest, AMessageWhoseKeyIsNotTextIsRefusedToItsCallerAlone) {
  EXPECT_EQ(refused_beside_others(Address{}), Code::invalid_argument);
}

TEST_F(IsolationTest, AMessageWhosePayloadIsNotTextIsRefusedToItsCallerAlone) {
  EXPECT_EQ(refused_beside_others(Enclose{}), Code::invalid_argument);
}

TEST_F(IsolationTest, ATimerWhoseTransitionIsRefusedThatWayIsConsumedAndSaysSo) {
  ASSERT_TRUE(world->send<note>("n", Later{}));
  world.simulation().run_for(2s);
  world.restart();
  EXPECT_TRUE(world->send<counter>("c", Add{1}));
  EXPECT_TRUE(world->read("note", "n").value().timers.empty());
  EXPECT_THAT(world->history("note", "n").value().events.front().payload, testing::HasSubstr("refused"));
}

TEST_F(IsolationTest, WhatATimersTransitionAskedForBeforeItWasRefusedIsDropped) {
  ASSERT_TRUE(world->send<note>("n", HalfLater{}));
  world.simulation().run_for(2s);
  const auto present = world->read("note", "n").value();
  EXPECT_THAT(world->history("note", "n").value().events.front().payload, testing::HasSubstr("refused"));
  EXPECT_TRUE(present.timers.empty());
  EXPECT_EQ(world->query({.text = "SELECT count(*) FROM noted"}).value()[0][0], SqlValue(0));
}

TEST(LargeInstances, BookkeepingFitsBehindAnEntryAtTheLimit) {
  World world([] {
    Machines machines;
    machines.add<counter>().add<order>();
    machines.work<order, Charge>("charge",
                                 [](const WorkContext& context, const Charge&) -> Result<Reply> {
                                   if (context.attempt == 1)
                                     return fail(Code::timed_out, std::string(5 << 20, 'x'));
                                   return no_reply();
                                 },
                                 {.retry = {.retries = 2, .first = 1s}});
    return machines;
  });
  // Finds the largest entry that may request work.
  std::size_t fits = 0;
  for (std::size_t step = 1 << 20; step > 0; step /= 2) {
    const auto key = "o" + std::to_string(fits + step);
    ASSERT_TRUE(world->create<order>(key, {.why = std::string(100, 'y')}));
    Cart cart{.why = std::string(fits + step, 'x')};
    const auto large = key + "x";
    if (!world->create<order>(large, cart)) continue;
    if (world->send<order>(large, Place{})) fits += step;
  }
  ASSERT_GT(fits, 900'000U);
  const auto key = "o" + std::to_string(fits) + "x";
  world.simulation().run_for(1min);
  EXPECT_TRUE(world->read("order", key).value().work.empty());
  for (const auto& pool : world->pools()) EXPECT_EQ(pool.granted, 0U) << pool.name;
}

TEST_F(IsolationTest, StatementsWithoutAnOperationAreRefusedInsteadOfDropped) {
  const auto outcome = world->atomically("p", [](Atomic& atomic) -> Result<void> {
    atomic.sql({.text = "DELETE FROM t"});
    return {};
  });
  EXPECT_EQ(code_of(outcome), Code::invalid_argument);
}

}  // namespace
}  // namespace pawl::test::isolation
