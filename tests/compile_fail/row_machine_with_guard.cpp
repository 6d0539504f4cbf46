// SPDX-License-Identifier: Apache-2.0
// A guard cannot run inside a database, so a row machine has none.
// expect: a row machine has no guards and no updates: a database cannot run them
// expect: door
#include "pawl/row_machine.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, pawl::when([] { return true; }))
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

constexpr pawl::RowMachine<door> rows{{.table = "doors", .column = "status", .key = "id"}};
