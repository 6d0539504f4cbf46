// SPDX-License-Identifier: Apache-2.0
// An order is charged by work that is tried again, and expires by a timer. In virtual time: an hour is
// nothing.
#include <iostream>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

using namespace std::chrono_literals;

enum class Order { cart, placed, paid, expired };
struct Place {};
struct Charge {
  int cents = 0;
};
struct Charged {
  std::string receipt;
};
struct Expire {};
struct Cart {
  int cents = 0;
  std::string receipt{};
};

// excerpt: machine
constexpr auto order =
    pawl::machine<Order, Cart>("order")
        .initial(Order::cart)
        .on<Place>(Order::cart, Order::placed,
                   [](Cart& cart, const Place&, pawl::Effects& effects) {
                     effects.set_timer("unpaid", 30min, Expire{});
                     effects.work("charge", Charge{cart.cents});
                   })
        .on<Charged>(Order::placed, Order::paid,
                     [](Cart& cart, const Charged& charged) { cart.receipt = charged.receipt; })
        .on<Expire>(Order::placed, Order::expired)
        .terminal(Order::paid, Order::expired);
// excerpt end
static_assert(pawl::verified<order>);

// excerpt: work
// The bank is busy at first, and takes no more than 100 at any time.
static pawl::Result<pawl::Reply> charge(const pawl::WorkContext& context, const Charge& charge) {
  if (context.attempt == 1 || charge.cents > 100)
    return pawl::fail(pawl::Code::timed_out, "the bank is busy");
  return pawl::reply(Charged{.receipt = context.request_id()});  // the same for every attempt
}

static pawl::Machines machines() {
  const pawl::RetryPolicy every_minute{
      .retries = pawl::RetryPolicy::kUnlimited, .first = 1min, .factor = 1, .jitter = pawl::Jitter::none};
  return pawl::Machines().add<order>().work<order, Charge>("charge", charge, {.retry = every_minute});
}
// excerpt end

int main() {
  pawl::sim::Simulation simulation;
  pawl::sim::Disk disk{1};
  auto& process = simulation.spawn("shop");
  const auto engine =
      pawl::Engine::open(process, machines(), {.store = "sqlite:shop.db", .vfs = disk.vfs_name()}).value();
  for (const auto& [key, cents] : {std::pair{"small", 42}, std::pair{"large", 9900}}) {
    engine->create<order>(key, {.cents = cents}).value();
    engine->send<order>(key, Place{}).value();
  }
  simulation.run_for(1h);
  for (const auto* key : {"small", "large"}) {
    const auto history = engine->history("order", key).value().events;
    const auto& last = history.front();
    const auto minutes = std::chrono::floor<std::chrono::minutes>(last.at - pawl::sim::kEpoch);
    std::cout << key << " is " << last.state << " after " << minutes.count() << " min: " << last.data << '\n';
  }
}

// prints: small is paid after 1 min: {"cents":42,"receipt":"order/small#1893456000000003"}
// prints: large is expired after 30 min: {"cents":9900,"receipt":""}
