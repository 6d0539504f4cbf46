// SPDX-License-Identifier: Apache-2.0
// The control of fire_unknown_event and send_unknown_event: these events are known.
#include "pawl/fire.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

pawl::Verdict push(Door& state, Log& log) { return pawl::fire<door>(state, log, Push{}); }
pawl::Result<void> turn(pawl::Local<door>& front) { return front.send(TurnKey{}); }
