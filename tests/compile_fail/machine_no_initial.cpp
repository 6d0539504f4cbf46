// SPDX-License-Identifier: Apache-2.0
// A machine says where it begins.
// expect: a machine has exactly one \.initial\(state\)
// expect: door
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
