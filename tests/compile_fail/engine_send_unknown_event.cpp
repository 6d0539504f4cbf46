// SPDX-License-Identifier: Apache-2.0
// An event that no transition takes cannot be sent through an engine either.
// expect: no transition of this machine takes an event of this type
// expect: Kick
#include "pawl/engine.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

struct Kick {};
constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

void kick(pawl::Engine& engine) { (void)engine.send<door>("front", Kick{}); }
