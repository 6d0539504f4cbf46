// SPDX-License-Identifier: Apache-2.0
// A state that nothing leads to is a mistake.
// expect: unreachable_state<Door::open>
// expect: no transition leads to this state from the initial one
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::open, Door::closed)
                          .on<TurnKey>(Door::closed, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
