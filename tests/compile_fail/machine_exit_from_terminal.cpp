// SPDX-License-Identifier: Apache-2.0
// A finished instance stays finished.
// expect: a_transition_leaves_a_terminal_state<Door::locked, .*TurnKey
// expect: a transition leaves a terminal state
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<Push>(Door::open, Door::locked)
                          .on<TurnKey>(Door::locked, Door::closed)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
