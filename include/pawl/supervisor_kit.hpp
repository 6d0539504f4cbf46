// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tests of workers in virtual time, on a simulated disk, with crashes at any point.
///
///     pawl::SupervisorKit kit([&] { pawl::WorkerTypes types; types.add<Pump>(…); return types; });
///     kit.supervisor().apply({.children = {{.name = "pump", .worker_type = "pump"}}}).value();
///     kit.wait_for("pump", "Running");                    // takes no real time
///     kit.crash();                                        // kill -9; the program starts again
///     kit.moves("pump");                                  // {"TryingToStart", "Running"}
///
///     // An action that runs again, even after being cut off at any point, leaves the same result.
///     auto report = pawl::verify_idempotent<Pump::Start, PumpTools, PumpDesired>(
///         {.make = [&](pawl::FaultPoints& points) { … }, .observe = [&] { return motor.to_text(); }});
///     EXPECT_EQ(report.violations, std::vector<std::string>{});
///
/// Decisions are pure, so they can be traced and replayed: see `SupervisorOptions::trace` and `replay`.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_program.hpp"
#include "pawl/supervisor.hpp"

namespace pawl {

struct TraceChild {
  std::string name;
  std::string type;
  std::string state;
  std::string reason;
  Phase phase = Phase::stopped;
  bool fresh = true;
  bool failing = false;
};

/// One decision with all its inputs. A plain struct that `pawl/codec.hpp` can encode.
struct TraceEntry {
  std::string path;
  std::string name;
  std::string type;
  std::string parent;
  Time created_at{};
  std::string state;
  bool stopping = false;
  Json observed{};
  Json desired{};
  std::vector<TraceChild> children{};
  Duration in_state{};
  std::uint32_t failures = 0;
  std::string last_error{};
  std::uint32_t incarnation = 1;
  std::string result;  ///< such as "go Running: it turns"
};

TraceEntry make_trace(const WorkerType& type, std::size_t state, bool stopping, const SnapshotParts& parts,
                      const Result<Decision>& decision);

/// Repeats a decision. Errors: `internal` if the result differs; `unknown_worker_type`; those of `decode`.
Result<void> replay(const WorkerTypes& types, const TraceEntry& entry);

struct SupervisorKitOptions {
  sim::Options simulation{};
  EngineOptions engine{};  ///< the kit sets its store and the supervisor's pool
  SupervisorOptions supervisor{};
};

/// A program with a supervisor, in a simulation of its own. Not thread-safe.
class SupervisorKit final : public sim::Program {
 public:
  /// Returns the program's types; called at each start.
  using Setup = std::function<WorkerTypes(Runtime& runtime)>;

  explicit SupervisorKit(Setup setup, SupervisorKitOptions options = {});
  ~SupervisorKit() override;

  Supervisor& supervisor() { return *supervisor_; }
  Engine& engine() { return *engine_; }
  const AttachReport& found() const { return found_; }

  /// Advances time tick by tick until `holds` returns true; false after the limit.
  bool wait_until(const std::function<bool()>& holds, Duration limit = std::chrono::minutes(10));
  /// Waits until the worker is in this state, or does not exist if `state` is empty.
  bool wait_for(std::string_view path, std::string_view state, Duration limit = std::chrono::minutes(10));
  /// The state of a worker; empty if it does not exist.
  std::string state(std::string_view path);
  /// The states that a worker has entered in its present generation, in order.
  std::vector<std::string> moves(std::string_view path);

  /// Crashes the program and starts it with other types, as another release would.
  void crash_and_change(Setup setup);
  /// Runs `work`; after a crash of the program, starts it again and repeats `work` from the start.
  Result<void> survive(const std::function<Result<void>(Supervisor&)>& work);

 private:
  Result<void> open(sim::Process& process) override;
  void close() override;

  SupervisorKitOptions options_;
  Setup setup_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<Engine> engine_;
  AttachReport found_;
};

/// Points at which an action can be cut off: the tools of a test call `reach` before each of their effects.
class FaultPoints {
 public:
  /// Thrown to leave the action.
  struct Cut : std::exception {
    const char* what() const noexcept override { return "cut off"; }
  };
  void reach() {
    if (++reached_ == cut_at_) throw Cut{};
  }
  std::uint32_t reached() const { return reached_; }
  void cut_at(std::uint32_t step) {
    reached_ = 0;
    cut_at_ = step;
  }

 private:
  std::uint32_t reached_ = 0;
  std::uint32_t cut_at_ = 0;
};

template <class Tools, class Desired>
struct IdempotencyTest {
  /// Resets what the action works on and returns tools for it.
  std::function<std::shared_ptr<Tools>(FaultPoints& points)> make;
  std::function<std::string()> observe;  ///< what the action works on, as text
  Desired desired{};
  int times = 3;
};

struct IdempotencyReport {
  std::uint32_t steps = 0;  ///< number of fault points; the action was cut off at each
  std::string once;         ///< the result of one run
  std::vector<std::string> violations;
};

/// Runs the action once, then several times in a row, then for each fault point: cut off there and run again.
template <class Action, class Tools, class Desired>
IdempotencyReport verify_idempotent(const IdempotencyTest<Tools, Desired>& test) {
  FaultPoints points;
  const WorkerIdentity identity{.path = "test", .name = "test", .type = "test", .parent = {}};
  IdempotencyReport report;
  auto run = [&](Tools& tools, std::string_view when) {
    try {
      const auto done = Action::run(tools, test.desired, ActionContext{.identity = identity, .number = 1});
      if (!done) report.violations.push_back(std::string(when) + ": " + done.error().to_string());
    } catch (const FaultPoints::Cut&) {  // NOLINT(bugprone-empty-catch): expected
    }
  };
  auto compare = [&](std::string_view when) {
    if (auto seen = test.observe(); seen != report.once)
      report.violations.push_back(std::string(when) + ": " + seen + " instead of " + report.once);
  };
  auto tools = test.make(points);
  run(*tools, "once");
  report.once = test.observe();
  report.steps = points.reached();
  for (int again = 1; again < test.times; ++again) {
    run(*tools, "again");
    compare("again");
  }
  for (std::uint32_t step = 1; step <= report.steps; ++step) {
    tools = test.make(points);
    points.cut_at(step);
    run(*tools, "cut off");
    points.cut_at(0);
    const auto when = "after a cut at step " + std::to_string(step);
    run(*tools, when);
    compare(when);
  }
  return report;
}

}  // namespace pawl
