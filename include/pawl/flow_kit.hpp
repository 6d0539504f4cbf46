// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tests of flows: in virtual time, on a simulated disk, with crashes wherever you want them.
///
///     pawl::FlowKit kit([&](pawl::Flows& flows) { flows.add(ship); }, {.pools = {{"downloads", 2}}});
///     kit.flows().start(ship, order, {.id = "a", .delay = 1h}).value();
///     kit.crash();                                       // kill -9; the program starts again
///     kit.flows().wait("ship", "a").value();             // takes no real time
///
///     // Crashes at every place where the program can crash, and sees whether the outside notices.
///     auto report = pawl::crash_everywhere({.setup = [&](pawl::Flows& flows) { flows.add(ship); },
///                                           .drive = [&](pawl::Flows& flows) { … start and wait … },
///                                           .reset = [&] { bank.clear(); },
///                                           .observe = [&] { return bank.to_text(); }});
///     EXPECT_TRUE(report.violations.empty());

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/flows.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_program.hpp"

namespace pawl {

struct FlowKitOptions {
  sim::Options simulation{};
  EngineOptions engine{};  ///< its store is the kit's own
  FlowsOptions flows{};
};

/// A program with flows in a simulation of its own. Externally synchronised.
class FlowKit final : public sim::Program {
 public:
  /// Adds the program's flows; called at each start.
  using Setup = std::function<void(Flows&)>;

  explicit FlowKit(Setup setup, FlowKitOptions options = {});
  ~FlowKit() override;

  Flows& flows() { return *flows_; }
  Engine& engine() { return *engine_; }
  /// What the last start found of runs that are not finished.
  const std::vector<RunsAtStep>& found() const { return found_; }

  /// A crash, after which another release of the program starts.
  void crash_and_change(Setup setup);

  /// Runs `work`; where the program crashes meanwhile, it is started again and `work` begins from the start.
  Result<void> survive(const std::function<Result<void>(Flows&)>& work);

 private:
  Result<void> open(sim::Process& process) override;
  void close() override;

  FlowKitOptions options_;
  Setup setup_;
  std::unique_ptr<Flows> flows_;
  std::unique_ptr<Engine> engine_;
  std::vector<RunsAtStep> found_;
};

struct CrashTest {
  FlowKit::Setup setup;
  std::function<Result<void>(Flows&)> drive;  ///< starts runs, with ids, and waits for them; may be repeated
  std::function<void()> reset;                ///< the outside as it is in the beginning
  std::function<std::string()> observe;       ///< what the flows have done outside
  FlowKitOptions options{};
};

struct CrashReport {
  std::uint64_t places = 0;             ///< at each of them the program was crashed, once
  std::string undisturbed;              ///< the outside after a run without a crash
  std::vector<std::string> violations;  ///< places after which the outside was different, or a run not ended
};

/// Runs the test without a crash, then once for each place where it can crash. Steps that are idempotent
/// leave the outside the same every time.
CrashReport crash_everywhere(const CrashTest& test);

}  // namespace pawl
