// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "pawl/sim.hpp"

namespace pawl::sim {
namespace {

struct Outcome {
  std::optional<std::string> violation;
  std::string trace;
  std::uint64_t hits = 0;
  std::uint64_t crashes = 0;
};

/// What `run` returns, or what it throws as text.
std::optional<std::string> violation_of(const std::function<Result<void>()>& run) {
  try {
    const auto result = run();
    return result ? std::nullopt : std::optional{result.error().to_string()};
  } catch (const Stuck& stuck) {
    return stuck.reason();
  } catch (const std::exception& error) {
    return error.what();
  } catch (const Crashed&) {
    return "a crash left the scenario; make calls that may crash inside Process::attempt";
  } catch (...) {
    return "an exception of an unknown type left the scenario";
  }
}

Outcome run_once(const Options& options, const Scenario& scenario) {
  Simulation sim(options);
  Outcome outcome;
  outcome.violation = violation_of([&] { return scenario(sim); });
  // A task that failed while destructors ran shows here at the latest.
  const auto held_back = violation_of([&] { return sim.run_for(Duration::zero()), Result<void>{}; });
  if (!outcome.violation) outcome.violation = held_back;
  if (outcome.violation) outcome.trace = sim.trace();
  outcome.hits = sim.hits();
  outcome.crashes = sim.crashes();
  return outcome;
}

std::string describe(const ExploreOptions& options, const Options& run, const Outcome& outcome) {
  auto command = fmt::format("{} --scenario {} --seed {}", options.command, options.name, run.seed);
  if (run.crash_at != 0) command += fmt::format(" --crash-at {}", run.crash_at);
  return fmt::format("violation in {} seed {}: {}\n{}replay: {}\n", options.name, run.seed,
                     *outcome.violation, outcome.trace, command);
}

}  // namespace

Summary explore(const ExploreOptions& options, const Scenario& scenario) {
  Summary summary;
  const auto visit = [&](const Options& run) {
    const auto outcome = run_once(run, scenario);
    summary.crash_points += outcome.crashes;
    if (!outcome.violation) return outcome.hits;
    auto text = describe(options, run, outcome);
    if (summary.violations++ < options.reports) {
      options.report ? options.report(text) : (void)std::fputs(text.c_str(), stderr);
    }
    if (summary.violations == 1) {
      summary.first_bad_seed = run.seed;
      summary.first_violation = std::move(text);
    }
    return outcome.hits;
  };
  for (; summary.seeds < options.seeds; ++summary.seeds) {
    Options run = options.simulation;
    run.seed = options.first_seed + summary.seeds;
    const auto hits = visit(run);
    if (summary.seeds >= options.crash_everywhere) continue;
    for (run.crash_at = 1; run.crash_at <= hits; ++run.crash_at) (void)visit(run);
  }
  return summary;
}

}  // namespace pawl::sim
