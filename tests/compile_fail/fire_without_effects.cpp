// SPDX-License-Identifier: Apache-2.0
// An update that asks for effects cannot run where there are none.
// expect: an update of this event takes Effects: fire it through an engine, or give it some
// expect: Push
#include "pawl/fire.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, [](Log&, const Push&, pawl::Effects&) {})
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

pawl::Verdict push(Door& state, Log& log) { return pawl::fire<door>(state, log, Push{}); }
