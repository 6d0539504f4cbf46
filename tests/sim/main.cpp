// SPDX-License-Identifier: Apache-2.0

// Runs scenarios in the simulation, many seeds each:
//
//     pawl_sim --seeds 10000 --jobs 2
//     pawl_sim --scenario counter --seed 17 --trace
//
// Each scenario runs each seed twice: as it is, and crashed at one of the fault points that it hits, which
// the seed chooses. So the first hundred seeds try crashes from the beginning to the end of a run already.
// One seed in 2,000 is crashed at each of its fault points. The last line is "seeds=… crash_points=…
// violations=…"; the exit code is 1 when there is a violation, 2 when the arguments make no sense.

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/random.hpp"
#include "tests/sim/scenarios.hpp"

namespace {

using namespace std::chrono_literals;

struct Entry {
  std::string_view name;
  pawl::Result<void> (*run)(pawl::sim::Simulation&);
  pawl::Duration job_delay_max;
};

constexpr auto kScenarios = std::to_array<Entry>({
    {"counter", pawl::scenarios::counter, 10ms},
    {"lease", pawl::scenarios::lease, 500ms},
    {"engine", pawl::scenarios::engine, 10ms},
    {"lifecycle", pawl::scenarios::lifecycle, 10ms},
    {"reuse", pawl::scenarios::reuse, 10ms},
    {"faults", pawl::scenarios::faults, 10ms},
    {"clock", pawl::scenarios::clock, 10ms},
    {"ownership", pawl::scenarios::ownership, 10ms},
    {"queries", pawl::scenarios::queries, 10ms},
    {"flow", pawl::scenarios::flow, 10ms},
    {"supervise", pawl::scenarios::supervise, 10ms},
});

constexpr std::uint64_t kSeedsPerCrashEverywhere = 2000;
constexpr std::uint64_t kReports = 3;  // of each scenario in full; the others are only counted

struct Arguments {
  std::uint64_t seeds = 200;
  std::uint64_t seed = 0;
  std::uint64_t crash_at = 0;
  std::uint64_t jobs = 1;
  std::string scenario;
  bool list = false;
  bool trace = false;
};

struct Counts {
  std::uint64_t seeds = 0;
  std::uint64_t crash_points = 0;
  std::uint64_t violations = 0;

  Counts& operator+=(const Counts& more) {
    seeds += more.seeds;
    crash_points += more.crash_points;
    violations += more.violations;
    return *this;
  }
};

class Explorer {
 public:
  Explorer(const Entry& entry, bool trace) : entry_(entry), trace_(trace) {}

  /// Runs one seed, crashed at this hit of a fault point or not; returns how many points it hit.
  std::uint64_t run(std::uint64_t seed, std::uint64_t crash_at) {
    pawl::sim::ExploreOptions options{.name = std::string(entry_.name), .first_seed = seed, .seeds = 1};
    options.simulation.job_delay_max = entry_.job_delay_max;
    options.simulation.crash_at = crash_at;
    if (trace_) options.simulation.trace_lines = std::numeric_limits<std::size_t>::max();
    options.reports = counts_.violations < kReports ? 1 : 0;
    std::uint64_t hits = 0;
    const auto summary = explore(options, [&](pawl::sim::Simulation& sim) {
      auto result = entry_.run(sim);
      hits = sim.hits();
      // Of a violation the report shows the whole trace; here that of a seed without one.
      if (trace_ && result) fmt::print("{}", sim.trace());
      return result;
    });
    counts_.crash_points += summary.crash_points;
    counts_.violations += summary.violations;
    return hits;
  }

  void run_and_crash(std::uint64_t seed) {
    ++counts_.seeds;
    const auto hits = run(seed, 0);
    if (hits == 0) return;
    if (seed % kSeedsPerCrashEverywhere == 0) {
      for (std::uint64_t at = 1; at <= hits; ++at) (void)run(seed, at);
    } else {
      (void)run(seed, 1 + pawl::Random(seed).next() % hits);
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  const Entry& entry_;
  const bool trace_;
  Counts counts_;
};

/// Every `jobs`th seed, beginning with `first`.
Counts run_share(const Arguments& arguments, std::uint64_t first) {
  Counts total;
  for (const Entry& entry : kScenarios) {
    if (!arguments.scenario.empty() && arguments.scenario != entry.name) continue;
    Explorer explorer(entry, arguments.trace);
    for (auto seed = first; seed <= arguments.seeds; seed += arguments.jobs) explorer.run_and_crash(seed);
    const auto seeds = std::max(total.seeds, explorer.counts().seeds);
    total += explorer.counts();
    total.seeds = seeds;
  }
  return total;
}

/// A process per share, because a simulation lets one of its threads run at a time. One that ends without
/// its counts counts as a violation.
Counts run_shares(const Arguments& arguments) {
  if (arguments.jobs == 1) return run_share(arguments, 1);
  std::vector<std::pair<pid_t, int>> children;
  for (std::uint64_t job = 0; job < arguments.jobs; ++job) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return {.violations = 1};
    const auto child = ::fork();
    if (child < 0) return {.violations = 1};
    if (child == 0) {
      ::close(ends[0]);
      const auto counts = run_share(arguments, 1 + job);
      const bool told = ::write(ends[1], &counts, sizeof(counts)) == sizeof(counts);
      (void)std::fflush(nullptr);
      ::_exit(told ? 0 : 1);
    }
    ::close(ends[1]);
    children.emplace_back(child, ends[0]);
  }
  Counts total;
  for (const auto& [child, end] : children) {
    Counts counts;
    if (::read(end, &counts, sizeof(counts)) != sizeof(counts)) {
      fmt::print(stderr, "a process of the simulation has died; --jobs 1 shows where\n");
      counts = {.violations = 1};
    }
    ::close(end);
    ::waitpid(child, nullptr, 0);
    total += counts;
  }
  return total;
}

Counts run_one_seed(const Arguments& arguments) {
  Counts total;
  for (const Entry& entry : kScenarios) {
    if (!arguments.scenario.empty() && arguments.scenario != entry.name) continue;
    Explorer explorer(entry, arguments.trace);
    (void)explorer.run(arguments.seed, arguments.crash_at);
    total += explorer.counts();
  }
  total.seeds = 1;
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Looks for seeds that break Pawl's scenarios."};
  Arguments arguments;
  app.add_option("--seeds", arguments.seeds, "How many seeds of each scenario, from 1 on")->default_val(200);
  auto* seed = app.add_option("--seed", arguments.seed, "This one seed only");
  app.add_option("--crash-at", arguments.crash_at, "Crash at this hit of a fault point")->needs(seed);
  app.add_option("--jobs", arguments.jobs, "How many processes share the seeds")
      ->default_val(1)
      ->check(CLI::Range(1, 256));
  app.add_option("--scenario", arguments.scenario, "This one scenario only");
  app.add_flag("--list", arguments.list, "Print the names of the scenarios");
  app.add_flag("--trace", arguments.trace, "Print the whole trace");
  CLI11_PARSE(app, argc, argv);

  if (arguments.list) {
    for (const Entry& entry : kScenarios) fmt::print("{}\n", entry.name);
    return 0;
  }
  if (!arguments.scenario.empty() &&
      std::ranges::find(kScenarios, arguments.scenario, &Entry::name) == kScenarios.end()) {
    fmt::print(stderr, "no scenario is named '{}'; --list shows the names\n", arguments.scenario);
    return 2;
  }
  const auto total = seed->count() > 0 ? run_one_seed(arguments) : run_shares(arguments);
  fmt::print("seeds={} crash_points={} violations={}\n", total.seeds, total.crash_points, total.violations);
  return total.violations == 0 ? 0 : 1;
}
