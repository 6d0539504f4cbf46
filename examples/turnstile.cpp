// SPDX-License-Identifier: Apache-2.0
// Every step is durable: the engine is closed and opened again, and the turnstile is where it was.
#include <iostream>

#include "pawl/engine.hpp"

enum class Bar { locked, unlocked };
struct Coin {};
struct Push {};
struct Takings {
  int coins = 0;
  int visitors = 0;
};

constexpr auto turnstile =
    pawl::machine<Bar, Takings>("turnstile")
        .initial(Bar::locked)
        .on<Coin>(Bar::locked, Bar::unlocked, [](Takings& takings) { ++takings.coins; })
        .on<Push>(Bar::unlocked, Bar::locked, [](Takings& takings) { ++takings.visitors; })
        .endless();
static_assert(pawl::verified<turnstile>);

int main() {
  pawl::ThreadRuntime runtime;
  const auto machines = pawl::Machines().add<turnstile>();
  const pawl::EngineOptions options{.store = "sqlite:turnstile.db"};

  auto engine = pawl::Engine::open(runtime, machines, options).value();
  if (!engine->get<turnstile>("north")) engine->create<turnstile>("north").value();
  engine->send<turnstile>("north", Coin{}).value();  // returns once it is durable
  engine.reset();                                    // the end of the process would do as well

  engine = pawl::Engine::open(runtime, machines, options).value();
  const auto visit = engine->send<turnstile>("north", Push{}).value();
  std::cout << "coins: " << visit.data.coins << ", visitors: " << visit.data.visitors << '\n';
  std::cout << engine->send<turnstile>("north", Push{}).error().message() << '\n';
}

// prints: coins: 1, visitors: 1
// prints: turnstile "north" is locked: it does not accept Push; legal: Coin
