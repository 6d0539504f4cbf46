// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tests of flows: in virtual time, on a simulated disk, with crashes at any point.
///
///     pawl::FlowKit kit([&](pawl::Flows& flows) { flows.add(ship); }, {.pools = {{"downloads", 2}}});
///     kit.flows().start(ship, order, {.id = "a", .delay = 1h}).value();
///     kit.crash();                                       // kill -9, then a restart
///     kit.flows().wait("ship", "a").value();             // takes no real time
///
///     // Crashes at every possible point and compares the external effects.
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
  EngineOptions engine{};  ///< its store is replaced by the kit's own
  FlowsOptions flows{};
};

/// A program with flows in its own simulation. Not thread-safe.
class FlowKit final : public sim::Program {
 public:
  /// Adds the program's flows; called at every start.
  using Setup = std::function<void(Flows&)>;

  explicit FlowKit(Setup setup, FlowKitOptions options = {});
  ~FlowKit() override;

  Flows& flows() { return *flows_; }
  Engine& engine() { return *engine_; }
  /// The unfinished runs that the last start found.
  const std::vector<RunsAtStep>& found() const { return found_; }

  /// Crashes, then starts another release of the program.
  void crash_and_change(Setup setup);

  /// Runs `work`; after a crash the program is restarted and `work` is run again from its beginning.
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
  std::function<Result<void>(Flows&)>
      drive;                             ///< starts runs with ids and waits for them; may be called again
  std::function<void()> reset;           ///< resets the external state
  std::function<std::string()> observe;  ///< describes the external state
  FlowKitOptions options{};
};

struct CrashReport {
  std::uint64_t places = 0;             ///< points at which the program was crashed, once each
  std::string undisturbed;              ///< the external state after a run without a crash
  std::vector<std::string> violations;  ///< points after which that state differed, or a run did not end
};

/// Runs the test without a crash, then once for each point at which it can crash. Idempotent steps lead to
/// the same external state every time.
CrashReport crash_everywhere(const CrashTest& test);

}  // namespace pawl
