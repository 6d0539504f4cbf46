// SPDX-License-Identifier: Apache-2.0
// A state from which no end can be reached is a mistake, unless the machine says that it never ends.
// expect: no_way_to_a_terminal_state<Door::closed>
// expect: no terminal state can be reached from this state; a machine that never ends says \.endless\(\)
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<Push>(Door::open, Door::locked)
                          .on<TurnKey>(Door::locked, Door::closed);
static_assert(pawl::verified<door>);
