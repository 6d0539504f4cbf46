// SPDX-License-Identifier: Apache-2.0
// The control of engine_send_unknown_event: this event is known.
#include "pawl/engine.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

void push(pawl::Engine& engine) { (void)engine.send<door>("front", Push{}); }
