// SPDX-License-Identifier: Apache-2.0
// Upgrades lead from schema to schema without leaving one out.
// expect: upgrades are declared in order, from schema 1 on, without a gap
// expect: FromSchema = 3|'3 == kSchema'
#include "pawl/verify.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct TurnKey {};
struct Log {};

struct LogV1 {};
struct LogV2 {};
constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open)
                          .on<TurnKey>(Door::open, Door::locked)
                          .terminal(Door::locked)
                          .upgrade<1>([](const LogV1&) { return LogV2{}; })
                          .upgrade<3>([](const LogV2&) { return Log{}; });
