// SPDX-License-Identifier: Apache-2.0
// A finished instance has nothing to recover from.
// expect: recovery_of_a_terminal_state<Door::locked>
// expect: a finished instance is not recovered
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked)
                          .recover(Door::locked, Door::closed);
static_assert(pawl::verified<door>);
