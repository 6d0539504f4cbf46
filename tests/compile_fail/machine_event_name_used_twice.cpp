// SPDX-License-Identifier: Apache-2.0
// Two events cannot be stored under one name.
// expect: name_used_twice<.*Push
// expect: two states or two events have the same stored name
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
                          .named<TurnKey>("Push");
static_assert(pawl::verified<door>);
