// SPDX-License-Identifier: Apache-2.0
// A terminal state must be in the enum.
// expect: undeclared_state<\(Door\)9>
// expect: a terminal or recovery state is not in the enum
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked, static_cast<Door>(9));
static_assert(pawl::verified<door>);
