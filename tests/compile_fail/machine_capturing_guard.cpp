// SPDX-License-Identifier: Apache-2.0
// A guard is part of the table, so it cannot remember anything from where it was written.
// expect: a guard must not capture; wrap a named function as pawl::call<&function>
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

constexpr auto longer_than(int limit) {
  return [limit] { return limit > 3; };
}
constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, pawl::when(longer_than(2)))
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked);
