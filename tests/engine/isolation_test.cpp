// SPDX-License-Identifier: Apache-2.0
// What one machine, handler or caller supplies is refused to it alone: the store and everybody else go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/atomic.hpp"
#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

constexpr const char* kNotText = "\xff\xfe";

enum class Note { open, closed };
struct NameTimer {};
struct Address {};
struct Enclose {};
struct Later {};
struct LaterDone {};

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
  /// Others are committed in the same batch and are not concerned.
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

  World world{notes};
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

TEST_F(IsolationTest, StatementsWithoutAnOperationAreRefusedInsteadOfDropped) {
  const auto outcome = world->atomically("p", [](Atomic& atomic) -> Result<void> {
    atomic.sql({.text = "DELETE FROM t"});
    return {};
  });
  EXPECT_EQ(code_of(outcome), Code::invalid_argument);
}

}  // namespace
}  // namespace pawl::test
