// SPDX-License-Identifier: Apache-2.0
// A machine that never ends has no end.
// expect: a machine that is \.endless\(\) has no terminal state
// expect: door
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
                          .endless();
static_assert(pawl::verified<door>);
