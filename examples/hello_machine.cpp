// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "pawl/fire.hpp"

enum class Door { closed, open, locked };
struct Push {};
struct Pull {};
struct TurnKey {};
struct Log {
  int opened = 0;
};

constexpr auto door = pawl::machine<Door, Log>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, [](Log& log) { ++log.opened; })
                          .on<Pull>(Door::open, Door::closed)
                          .on<TurnKey>(Door::closed, Door::locked)
                          .terminal(Door::locked);
static_assert(pawl::verified<door>);

int main() {
  pawl::Local<door> front;
  if (front.send(Push{})) std::cout << "opened " << front.data().opened << " time\n";
  if (const auto result = front.send(TurnKey{}); !result) std::cout << result.error().message() << '\n';
}

// prints: opened 1 time
// prints: door is open: it does not accept TurnKey; legal: Pull
