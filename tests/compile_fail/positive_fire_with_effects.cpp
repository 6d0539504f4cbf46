// SPDX-License-Identifier: Apache-2.0
// The control of fire_without_effects: here are some.
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

pawl::Verdict push(Door& state, Log& log, pawl::Effects& effects) {
  return pawl::fire<door>(state, log, Push{}, effects);
}
