// SPDX-License-Identifier: Apache-2.0
// An event that no transition takes cannot be sent.
// expect: no transition of this machine takes an event of this type
// expect: Kick
#include "pawl/fire.hpp"

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

pawl::Result<void> kick(pawl::Local<door>& front) { return front.send(Kick{}); }
