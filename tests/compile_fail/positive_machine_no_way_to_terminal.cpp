// SPDX-License-Identifier: Apache-2.0
// The control of machine_no_way_to_terminal: this machine says that it never ends.
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
                          .endless();
static_assert(pawl::verified<door>);
