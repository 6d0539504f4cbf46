// SPDX-License-Identifier: Apache-2.0
// A guard takes the data and the event of its own machine, or less, and only reads them.
// expect: a guard takes \(\), \(const Data&\) or \(const Data&, const Event&\) and returns bool
// expect: Push
#include "pawl/fire.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, pawl::when([](Log&) { return true; }))
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

pawl::Result<void> push(pawl::Local<door>& front) { return front.send(Push{}); }
