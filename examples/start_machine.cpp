// SPDX-License-Identifier: Apache-2.0
// An order of bread. Each run of the program takes one more order; the store remembers all of them.
#include <iostream>
#include <string>

#include "pawl/engine.hpp"

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

static pawl::Result<void> take_order(pawl::Engine& engine) {
  const auto taken = engine.counts()["order"];
  std::size_t number = 1;
  for (const auto& [state, count] : taken) number += count;
  const auto key = "order-" + std::to_string(number);

  PAWL_CHECK(engine.create<order>(key));
  PAWL_TRY(const auto baked, engine.send<order>(key, Bake{.loaves = 2}));  // returns once it is durable
  std::cout << key << ": " << baked.data.loaves << " loaves\n";

  PAWL_CHECK(engine.send<order>(key, Collect{}));
  const auto again = engine.send<order>(key, Collect{});  // refused, and nothing is changed
  std::cout << again.error().message() << '\n';
  return {};
}

static pawl::Result<void> run() {
  pawl::ThreadRuntime runtime;
  PAWL_TRY(const auto engine,
           pawl::Engine::open(runtime, pawl::Machines().add<order>(), {.store = "sqlite:bakery.db"}));
  return take_order(*engine);
}

int main() {
  if (const auto done = run(); !done) {
    std::cerr << done.error().to_string() << '\n';
    return 1;
  }
}

// prints: order-1: 2 loaves
// prints: order "order-1" is collected, which is final: it accepts nothing more, not Collect
