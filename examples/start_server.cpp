// SPDX-License-Identifier: Apache-2.0
// The orders of the bakery in a dashboard. The program serves until its input ends or Enter is pressed.
#include <iostream>

#include "pawl/server.hpp"

enum class Order { placed, baked, collected };
struct Bake {
  int loaves = 0;
};
struct Collect {};
struct Slip {
  int loaves = 0;
};

constexpr auto order = pawl::machine<Order, Slip>("order")
                           .initial(Order::placed)
                           .on<Bake>(Order::placed, Order::baked,
                                     [](Slip& slip, const Bake& bake) { slip.loaves = bake.loaves; })
                           .on<Collect>(Order::baked, Order::collected)
                           .terminal(Order::collected);
static_assert(pawl::verified<order>);

// excerpt: serve
static pawl::Result<void> serve() {
  pawl::ThreadRuntime runtime;
  PAWL_TRY(const auto engine,
           pawl::Engine::open(runtime, pawl::Machines().add<order>(), {.store = "sqlite:bakery.db"}));
  PAWL_TRY(const auto server, pawl::Server::start(runtime, *engine, {.listen = "127.0.0.1:0"}));
  std::cerr << "http://127.0.0.1:" << server->port() << "/ until Enter is pressed\n";
  std::cin.get();
  std::cout << (server->drain(std::chrono::seconds(10)) ? "closed\n" : "closed, requests were cut off\n");
  return {};
}
// excerpt end

int main() {
  if (const auto done = serve(); !done) {
    std::cerr << done.error().to_string() << '\n';
    return 1;
  }
}

// prints: closed
