// SPDX-License-Identifier: Apache-2.0
// Crashes a program at every commit. Its work runs at least once, so what it does outside must be idempotent.
#include <iostream>
#include <set>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

namespace sim = pawl::sim;

enum class Invoice { due, paying, paid };
struct Pay {};
struct Paid {};
struct Nothing {};

constexpr auto invoice =
    pawl::machine<Invoice, Nothing>("invoice")
        .initial(Invoice::due)
        .on<Pay>(Invoice::due, Invoice::paying,
                 [](Nothing&, const Pay& pay, pawl::Effects& effects) { effects.work("transfer", pay); })
        .on<Paid>(Invoice::paying, Invoice::paid)
        .terminal(Invoice::paid);

// excerpt: scenario
static pawl::Result<void> pay_once(sim::Simulation& simulation, bool idempotent) {
  std::set<std::string> transfers;  // what the bank has seen; it knows a repeated transfer by its id
  const auto transfer = [&](const pawl::WorkContext& work, const Pay&) -> pawl::Result<pawl::Reply> {
    transfers.insert(idempotent ? work.request_id() : std::to_string(transfers.size()));
    return pawl::reply(Paid{});
  };
  sim::Disk disk{simulation.seed()};
  const pawl::EngineOptions options{.store = "sqlite:shop.db", .vfs = disk.vfs_name()};
  for (bool done = false; !done;) {
    auto& process = simulation.spawn("shop");
    std::unique_ptr<pawl::Engine> engine;
    done = process.attempt([&] {  // false when the process has crashed
      const auto machines = pawl::Machines().add<invoice>().work<invoice, Pay>("transfer", transfer);
      engine = pawl::Engine::open(process, machines, options).value();
      engine->create<invoice>("i", {}, {.request_id = "create i"})
          .value();  // harmless when it was done before
      engine->send<invoice>("i", Pay{}, {.request_id = "pay i"}).value();
      engine->wait<invoice>("i", std::chrono::hours(1), Invoice::paid).value();
    });
    if (!done) disk.power_cut(sim::Unsynced::random);
  }
  simulation.require(transfers.size() == 1, "paid " + std::to_string(transfers.size()) + " times");
  return {};
}
// excerpt end

int main() {
  for (const bool idempotent : {false, true}) {
    sim::ExploreOptions options{.name = "pay", .seeds = 5, .crash_everywhere = 5, .reports = 1};
    options.report = [](std::string_view text) { std::cout << text.substr(0, text.find('\n')) << '\n'; };
    const auto run = [&](sim::Simulation& simulation) { return pay_once(simulation, idempotent); };
    std::cout << (sim::explore(options, run).violations == 0 ? "sound" : "broken") << '\n';
  }
}

// prints: violation in pay seed 1: paid 2 times
// prints: broken
// prints: sound
