// SPDX-License-Identifier: Apache-2.0
#include "tests/seeds/table_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using seeds::differences;
using seeds::Table;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

enum class Door { closed, open, locked };
struct Push {};
struct Pull {};
struct TurnKey {};
struct Log {
  int opened = 0;
};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, [](Log& log) { ++log.opened; })
                          .on<Pull>(Door::open, Door::closed)
                          .on<TurnKey>(Door::closed, Door::locked)
                          .terminal(Door::locked)
                          .recover(Door::open, Door::closed);

Table right_table() {
  return {.initial = "closed",
          .terminal = {"locked"},
          .legal = {{"closed", "Push", "open"}, {"open", "Pull", "closed"}, {"closed", "TurnKey", "locked"}},
          .recovery = {{"open", "closed"}}};
}

TEST(TableCheck, FindsNothingWhereMachineAndTableAgree) {
  EXPECT_THAT(differences<door>(right_table()), IsEmpty());
}

TEST(TableCheck, FindsATransitionThatTheTableDoesNotHave) {
  auto table = right_table();
  table.legal.pop_back();
  EXPECT_THAT(differences<door>(table),
              Contains("typed: closed + TurnKey leads to locked, but is not in the table"));
  EXPECT_THAT(differences<door>(table),
              Contains("run time: closed + TurnKey leads to locked, but is not in the table"));
  EXPECT_THAT(differences<door>(table), Contains("has 3 transitions, the table 2"));
}

TEST(TableCheck, FindsATransitionThatTheMachineDoesNotHave) {
  auto table = right_table();
  table.legal.push_back({"open", "TurnKey", "locked"});
  EXPECT_THAT(differences<door>(table),
              Contains("typed: open + TurnKey is refused, but leads to locked: door is open: it does not "
                       "accept TurnKey; legal: Pull"));
}

TEST(TableCheck, FindsAnotherTarget) {
  auto table = right_table();
  table.legal[1].to = "locked";
  EXPECT_THAT(differences<door>(table), ElementsAre("run time: open + Pull leads to closed, not to locked",
                                                    "typed: open + Pull leads to closed, not to locked"));
}

TEST(TableCheck, FindsAnotherInitialStateTerminalStateOrRecovery) {
  auto table = right_table();
  table.initial = "open";
  EXPECT_THAT(differences<door>(table), ElementsAre("begins in closed, not in open"));
  table = right_table();
  table.terminal = {};
  EXPECT_THAT(differences<door>(table), Contains("locked is final, the table says otherwise"));
  table = right_table();
  table.recovery = {};
  EXPECT_THAT(differences<door>(table), ElementsAre("open recovers to closed, not to open"));
}

TEST(TableCheck, FindsNamesThatOnlyOneSideKnows) {
  auto table = right_table();
  table.legal.push_back({"ajar", "Kick", "open"});
  EXPECT_THAT(differences<door>(table), Contains("the machine has no state ajar"));
  EXPECT_THAT(differences<door>(table), Contains("the machine has no event Kick"));
}

TEST(TableCheck, ARefusalMustHaveTheRightCodeAndChangeNothing) {
  const auto table = right_table();
  seeds::Differences found;
  judge(table,
        {.way = "by hand",
         .from = "closed",
         .event = "Pull",
         .error = pawl::Error(pawl::Code::guard_refused, "no", {{"legal", "TurnKey, Push"}}),
         .to = "open",
         .data_changed = true},
        found);
  EXPECT_THAT(found,
              ElementsAre("by hand: closed + Pull is refused with guard_refused, not with illegal_event",
                          "by hand: closed + Pull is refused but moves to open",
                          "by hand: closed + Pull is refused but changes the data"));
}

}  // namespace
