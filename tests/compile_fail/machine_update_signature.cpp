// SPDX-License-Identifier: Apache-2.0
// An update takes the data and the event of its own machine, or less.
// expect: an update takes \(\), \(Data&\), \(Data&, const Event&\) or \(Data&, const Event&, Effects&\)
// expect: Push
#include "pawl/fire.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, [](Log&, const TurnKey&) {})
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);

pawl::Result<void> push(pawl::Local<door>& front) { return front.send(Push{}); }
