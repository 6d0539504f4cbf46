// SPDX-License-Identifier: Apache-2.0

// Runs scenarios in the simulation, many seeds each:
//
//     pawl_sim --seeds 10000
//     pawl_sim --scenario counter --seed 17 --trace
//
// Each scenario runs each seed. The last line is "seeds=… crash_points=… violations=…"; the exit code is 1
// when there is a violation, 2 when the arguments make no sense.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include "tests/sim/scenarios.hpp"

namespace {

using namespace std::chrono_literals;

struct Entry {
  std::string_view name;
  pawl::Result<void> (*run)(pawl::sim::Simulation&);
  pawl::Duration job_delay_max;
  bool by_name_only = false;  // shows a known defect: runs only with --scenario, until that is fixed
};

constexpr auto kScenarios = std::to_array<Entry>({
    {"counter", pawl::scenarios::counter, 10ms},
    {"lease", pawl::scenarios::lease, 500ms},
    {"engine", pawl::scenarios::engine, 10ms},
    {"lifecycle", pawl::scenarios::lifecycle, 10ms, true},
    {"reuse", pawl::scenarios::reuse, 10ms, true},
    {"faults", pawl::scenarios::faults, 10ms, true},
    {"clock", pawl::scenarios::clock, 10ms, true},
    {"flow", pawl::scenarios::flow, 10ms},
    {"supervise", pawl::scenarios::supervise, 10ms},
});

struct Arguments {
  std::uint64_t seeds = 200;
  std::uint64_t seed = 0;
  std::uint64_t crash_at = 0;
  std::string scenario;
  bool list = false;
  bool trace = false;
};

pawl::sim::Summary run(const Entry& entry, const Arguments& arguments, bool one_seed) {
  pawl::sim::ExploreOptions options;
  options.name = entry.name;
  options.simulation.job_delay_max = entry.job_delay_max;
  options.seeds = arguments.seeds;
  options.crash_everywhere = arguments.seeds / 200;
  if (one_seed) {
    options.first_seed = arguments.seed;
    options.seeds = 1;
    options.crash_everywhere = 0;
    options.simulation.crash_at = arguments.crash_at;
  }
  if (!arguments.trace) return explore(options, entry.run);
  options.simulation.trace_lines = std::numeric_limits<std::size_t>::max();
  return explore(options, [&](pawl::sim::Simulation& sim) {
    // Of a violation the report shows the whole trace; here that of a seed without one.
    auto result = entry.run(sim);
    if (result) fmt::print("{}", sim.trace());
    return result;
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Looks for seeds that break Pawl's scenarios."};
  Arguments arguments;
  app.add_option("--seeds", arguments.seeds, "How many seeds of each scenario, from 1 on")->default_val(200);
  auto* seed = app.add_option("--seed", arguments.seed, "This one seed only");
  app.add_option("--crash-at", arguments.crash_at, "Crash at this hit of a fault point")->needs(seed);
  app.add_option("--scenario", arguments.scenario, "This one scenario only");
  app.add_flag("--list", arguments.list, "Print the names of the scenarios");
  app.add_flag("--trace", arguments.trace, "Print the whole trace");
  CLI11_PARSE(app, argc, argv);

  pawl::sim::Summary total;
  bool found = false;
  for (const Entry& entry : kScenarios) {
    if (!arguments.scenario.empty() && arguments.scenario != entry.name) continue;
    if (arguments.scenario.empty() && entry.by_name_only && !arguments.list) continue;
    found = true;
    if (arguments.list) {
      fmt::print("{}\n", entry.name);
      continue;
    }
    const auto summary = run(entry, arguments, seed->count() > 0);
    total.seeds = summary.seeds;
    total.crash_points += summary.crash_points;
    total.violations += summary.violations;
  }
  if (!found) {
    fmt::print(stderr, "no scenario is named '{}'; --list shows the names\n", arguments.scenario);
    return 2;
  }
  if (arguments.list) return 0;
  fmt::print("seeds={} crash_points={} violations={}\n", total.seeds, total.crash_points, total.violations);
  return total.violations == 0 ? 0 : 1;
}
