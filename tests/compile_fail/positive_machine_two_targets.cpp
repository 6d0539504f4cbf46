// SPDX-License-Identifier: Apache-2.0
// The control of machine_two_targets: with a guard on the first row there is a choice.
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, pawl::when([] { return true; }))
                          .on<Push>(Door::closed, Door::locked)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
