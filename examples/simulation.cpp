// SPDX-License-Identifier: Apache-2.0

// Crashes a program between two writes, finds a seed that shows the bug, and replays it.

#include <cstdio>
#include <string>

#include "pawl/sim.hpp"

using namespace std::chrono_literals;
namespace sim = pawl::sim;

struct Account {  // survives crashes, like a database
  int balance = 0;
  bool paid = false;
};

// Pays ten after an hour; false when it crashed. The bug: a crash fits between the money and the mark.
static bool run_payer(sim::Process& process, Account& account) {
  const auto lane = process.open_lane("payer");
  lane->after(1h, [&] {
    if (account.paid) return;
    account.balance += 10;
    if (!process.fault("mark")) account.paid = true;
  });
  pawl::Gate never;
  return process.attempt([&] { process.wait(never, 2h); });
}

static pawl::Result<void> scenario(sim::Simulation& simulation) {
  simulation.arm("mark", sim::crash_with_ppm(200'000));  // one in five
  Account account;
  while (!run_payer(simulation.spawn("node"), account)) {}
  simulation.require(account.balance == 10, "paid " + std::to_string(account.balance) + " instead of 10");
  return {};
}

int main(int argc, char** argv) {
  const auto print = [](std::string_view text) { std::printf("%.*s", int(text.size()), text.data()); };
  sim::ExploreOptions options{.name = "payer", .seeds = 20, .reports = 1, .simulation = {.trace_lines = 7}};
  options.command = "example_simulation";
  options.report = print;
  // As the report says: --scenario payer --seed N
  if (argc == 5) options.first_seed = std::stoull(argv[4]), options.seeds = 1;
  const auto found = sim::explore(options, scenario);
  std::printf("%d of %d seeds pay twice\n", int(found.violations), int(found.seeds));
}

// prints: violation in payer seed 3: paid 20 instead of 10
// prints: (3 earlier lines)
// prints: 2 3600.000000 node crashes at mark hit 1
// prints: 2 3600.000000 node#2 starts
// prints: 3 7200.000000 time
// prints: 4 7200.000000 node#2/payer timer 1
// prints: 4 7200.000000 node#2 passes mark hit 2
// prints: 5 10800.000000 time
// prints: 5 10800.000000 violation: paid 20 instead of 10
// prints: replay: example_simulation --scenario payer --seed 3
// prints: 3 of 20 seeds pay twice
