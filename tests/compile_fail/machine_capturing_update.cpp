// SPDX-License-Identifier: Apache-2.0
// An update is part of the table, so it cannot remember anything from where it was written.
// expect: an update must not capture; wrap a named function as pawl::call<&function>
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Count {
  int pushes = 0;
};
constexpr auto make(int by) {
  return [by](Count& count) { count.pushes += by; };
}
constexpr auto door = pawl::machine<Door, Count>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, make(2))
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
