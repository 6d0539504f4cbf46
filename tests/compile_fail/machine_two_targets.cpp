// SPDX-License-Identifier: Apache-2.0
// Without guards, one event leads from one state to one target.
// expect: two_targets<Door::closed, .*Push
// expect: one \(state, event\) has two targets and the first has no guard
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<Push>(Door::closed, Door::locked)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);
