// SPDX-License-Identifier: Apache-2.0
// A transition to a state that the enum does not have is refused, with the event.
// expect: unknown_state<\(Door\)9, .*Push
// expect: a transition names a state that the enum does not have
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, static_cast<Door>(9))
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
