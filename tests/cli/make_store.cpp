// SPDX-License-Identifier: Apache-2.0
// Makes the store that the command is tested on: cli_store <path> [stay]
// With `stay` it says "open" and keeps the store open until its input ends.
#include <iostream>
#include <limits>

#include "pawl/engine.hpp"

namespace {

enum class Door { closed, open, locked };
struct Push {
  std::string by;
};
struct Pull {};
struct TurnKey {};
struct Count {
  int opened = 0;
};

constexpr auto door = pawl::machine<Door, Count>("door")
                          .initial(Door::closed)
                          .on<Push>(Door::closed, Door::open, [](Count& count) { ++count.opened; })
                          .on<Pull>(Door::open, Door::closed)
                          .on<TurnKey>(Door::closed, Door::locked)
                          .terminal(Door::locked);

pawl::Result<void> make(const std::string& path, bool stay) {
  pawl::ThreadRuntime runtime;
  PAWL_TRY(const auto engine,
           pawl::Engine::open(runtime, pawl::Machines().add<door>(), {.store = "sqlite:" + path}));
  PAWL_CHECK(engine->create<door>("front"));
  PAWL_CHECK(engine->create<door>("back"));
  PAWL_CHECK(engine->send<door>("front", Push{.by = "Ada"}));
  PAWL_CHECK(engine->send<door>("back", TurnKey{}));
  PAWL_CHECK(engine->send<door>("front", Pull{}));
  PAWL_CHECK(engine->create<door>("bell\a\x1b[31m"));  // must not reach a terminal as it is
  if (stay) {
    std::cout << "open" << std::endl;
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto made = argc == 2 || argc == 3
                        ? make(argv[1], argc == 3)
                        : pawl::fail(pawl::Code::invalid_argument, "cli_store <path> [stay]");
  if (!made) std::cerr << made.error().to_string() << '\n';
  return made ? 0 : 1;
}
