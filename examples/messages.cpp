// SPDX-License-Identifier: Apache-2.0
// A sale tells the till of another partition, exactly once, whatever crashes in between.
#include <iostream>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

using namespace std::chrono_literals;

enum class Till { open, closed };
struct Take {
  int cents = 0;
};
struct Close {};
struct Sum {
  int cents = 0;
};
constexpr auto till = pawl::machine<Till, Sum>("till")
                          .initial(Till::open)
                          .stay<Take>(Till::open, [](Sum& sum, const Take& take) { sum.cents += take.cents; })
                          .on<Close>(Till::open, Till::closed)
                          .terminal(Till::closed);

enum class Sale { open, sold };
struct Sell {
  int cents = 0;
};
struct Goods {
  std::string till;
};
// excerpt: sender
constexpr auto sale = pawl::machine<Sale, Goods>("sale")
                          .initial(Sale::open)
                          .on<Sell>(Sale::open, Sale::sold,
                                    [](Goods& goods, const Sell& sell, pawl::Effects& effects) {
                                      effects.send<till>(goods.till, Take{sell.cents});
                                    })
                          .terminal(Sale::sold);
// excerpt end

// What the sender's history says of a message.
struct Outcome {
  bool delivered = false;
  std::string refused;
};

int main() {
  pawl::sim::Simulation simulation;
  pawl::sim::Disk disk{1};
  const auto machines = pawl::Machines().add<till>().add<sale>();
  const pawl::EngineOptions options{.store = "sqlite:shop.db", .vfs = disk.vfs_name()};

  auto* process = &simulation.spawn("shop");
  auto engine = pawl::Engine::open(*process, machines, options).value();
  engine->create<till>("front").value();
  engine->create<sale>("s-1", {.till = "front"}).value();
  engine->create<sale>("s-2", {.till = "nowhere"}).value();
  for (const auto* key : {"s-1", "s-2"}) engine->send<sale>(key, Sell{250}).value();
  process->crash();  // both sales are durable; their messages may or may not have been delivered
  disk.process_kill();
  engine.reset();

  process = &simulation.spawn("shop");
  engine = pawl::Engine::open(*process, machines, options).value();
  simulation.run_for(1s);
  std::cout << "the till has " << engine->get<till>("front").value().data.cents << '\n';
  for (const auto* key : {"s-1", "s-2"}) {
    const auto newest = engine->history("sale", key, 0, 1).value().events.front();
    const auto outcome = pawl::decode<Outcome>(newest.payload).value();
    std::cout << key << ": " << (outcome.delivered ? "delivered" : outcome.refused) << '\n';
  }
}

// prints: the till has 250
// prints: s-1: delivered
// prints: s-2: PAWL-1006 unknown_instance: there is no till "nowhere" (key=nowhere)
