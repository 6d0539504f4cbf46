// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A deterministic simulation of whole programs: virtual time, a seeded scheduler, crashes and faults. What
/// runs on a `Runtime&` runs here unchanged, in milliseconds, and a failure replays from its seed.
///
///     pawl::sim::Simulation sim{{.seed = 42}};
///     pawl::sim::Process& node = sim.spawn("node-1");      // a Runtime
///     sim.arm("store.commit", pawl::sim::crash_at_hit(3));
///     auto lane = node.open_lane("decide");
///     lane->after(1h, [&] { sim.note("an hour has passed"); });
///     sim.run_until_idle();                                // takes no real time
///     if (node.crashed()) { lane.reset(); restart(sim.spawn("node-1")); }
///
/// Everything runs on the thread that made the simulation, except that jobs, which may block, have threads of
/// their own of which only one moves at a time. Threads made elsewhere must stay outside.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/error.hpp"
#include "pawl/runtime.hpp"
#include "pawl/time.hpp"

namespace pawl::sim {

namespace detail {
class Core;
struct Node;
}  // namespace detail

/// The wall-clock time at which every simulation begins.
inline constexpr Time kEpoch = std::chrono::sys_days{std::chrono::year{2030} / 1 / 1};

struct Options {
  std::uint64_t seed = 1;                ///< decides every choice of the scheduler
  Duration job_delay_max{0};             ///< each job starts after a random delay up to this
  std::size_t trace_lines = 200;         ///< the trace keeps this many of its last lines
  std::uint64_t step_limit = 1'000'000;  ///< one call of `run_…` or `wait` that needs more steps is stuck
  std::uint64_t crash_at = 0;            ///< see `Simulation::crash_at`
};

/// Thrown to leave the code of a crashed process; rethrow it if you catch it. Not a std::exception, so that
/// code that turns exceptions into errors does not catch it.
struct Crashed {};

/// Deadlock or livelock. Shows the end of the trace.
class Stuck : public std::runtime_error {
 public:
  Stuck(std::string reason, const std::string& details)
      : std::runtime_error(reason + "\n" + details), reason_(std::move(reason)) {}
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

/// An invariant that a scenario requires does not hold.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What happens at a fault point: the call fails (`fault` returns true), or its process crashes there. Either
/// at the nth hit of the point, counted from 1 over the whole simulation, or at each hit with a probability
/// in parts per million.
struct Fault {
  enum class Kind { fail, crash };
  Kind kind = Kind::fail;
  std::uint64_t hit = 0;
  std::uint32_t ppm = 0;
};

constexpr Fault fail_at_hit(std::uint64_t nth) { return {Fault::Kind::fail, nth, 0}; }
constexpr Fault crash_at_hit(std::uint64_t nth) { return {Fault::Kind::crash, nth, 0}; }
constexpr Fault fail_with_ppm(std::uint32_t ppm) { return {Fault::Kind::fail, 0, ppm}; }
constexpr Fault crash_with_ppm(std::uint32_t ppm) { return {Fault::Kind::crash, 0, ppm}; }

/// One simulated process: a `Runtime` with clocks of its own. Lives as long as its simulation, also after a
/// crash: its lanes and pools can still be called and destroyed, but do nothing. Externally
/// synchronised.
///
/// A crash leaves the task or job that caused it by `Crashed`; each other job of the process leaves its
/// `wait` or `fault` that way. In a destructor that runs meanwhile, and outside any task after the crash,
/// `wait` returns false and `fault` returns true, so that nothing is written any more. A destructor that
/// waits while its process is still alive must not be where it crashes: give such a class a `stop()` to call
/// before.
class Process final : public Runtime {
 public:
  ~Process() override;

  const std::string& name() const noexcept;

  /// Kill -9: queued tasks, timers and jobs vanish, waiting jobs are unwound. Does not return to a task or
  /// job of this process. Then destroy what ran on it and spawn its successor.
  void crash();
  bool crashed() const noexcept;

  /// Runs `work` on the caller's thread, outside any task; false when this process has crashed.
  bool attempt(const std::function<void()>& work);

  /// Moves the wall clock forward or back, but not the monotonic clock.
  void jump_clock(Duration by);

  /// From now on both clocks run faster (or slower, when negative) by `ppm` parts in a million, as with a bad
  /// oscillator; timers and timeouts follow them. More than -1'000'000.
  void set_drift_ppm(std::int64_t ppm);

  Time now() override;
  Instant instant() override;
  std::uint64_t random() override;
  std::unique_ptr<Lane> open_lane(std::string name) override;
  std::unique_ptr<ThreadPool> open_thread_pool(std::string name, ThreadPool::Options options) override;

  /// In a job: others run until the gate is open. Outside any task: runs the simulation until it is. Throws
  /// `Stuck` when that can never be, `Crashed` when the process crashes meanwhile.
  bool wait(Gate& gate, std::optional<Duration> timeout = std::nullopt) override;

  /// See `Simulation::arm`. In a job this is also a place where others may run first.
  bool fault(std::string_view point) override;

 private:
  friend class Simulation;
  explicit Process(std::unique_ptr<detail::Node> node);
  std::unique_ptr<detail::Node> node_;
};

/// Several processes under one scheduler and one virtual time. At each step the scheduler picks one of: the
/// first task of a lane, the earliest due timer of a lane, a job that can begin or go on. Time passes only
/// when there is nothing to pick. `Lane::run_here` of an idle lane runs the task at once or refuses, as the
/// seed decides. An exception that leaves a task or job comes out of the call that runs the
/// simulation, and all processes are crashed before that, so that everything can be destroyed.
/// Externally synchronised.
class Simulation {
 public:
  explicit Simulation(Options options = {});
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  /// Starts a process. A name may be used again, for the successor of a crashed process.
  Process& spawn(std::string name);

  /// One step of the scheduler, or one advance of time; false when there is nothing to do.
  bool step();
  /// Until nothing is left to do now or later. A timer that sets itself again never rests: use `run_for`.
  void run_until_idle();
  /// Everything that happens in the next `time`. `run_for(0)` runs what can run without waiting.
  void run_for(Duration time);
  /// Until `done`, asked before each step, says so. `Stuck` when nothing is left to do or the limit is
  /// reached.
  void run_until(const std::function<bool()>& done);

  /// Lets `fault(point)` fail or crash. Several faults may be armed at one point; a crash goes before a
  /// failure.
  void arm(std::string_view point, Fault fault);
  void disarm(std::string_view point);
  /// How often a point, or any point, was hit, armed or not.
  std::uint64_t hits(std::string_view point) const;
  std::uint64_t hits() const noexcept;
  /// Crashes at the nth hit of all points together, counted from 1. Run once, read `hits()`, and run again
  /// for each of them to see a program crash everywhere it can. 0: never.
  void crash_at(std::uint64_t nth) noexcept;
  /// How many processes have crashed.
  std::uint64_t crashes() const noexcept;

  /// A random number below `bound` for the scenario's own choices.
  std::uint64_t draw(std::uint64_t bound);
  /// Virtual time since the beginning.
  Duration elapsed() const noexcept;
  std::uint64_t steps() const noexcept;
  std::uint64_t seed() const noexcept;

  /// Adds a line to the trace.
  void note(std::string_view text);
  /// Throws `Violation` with `text` when `holds` is false.
  void require(bool holds, std::string_view text);

  /// The last lines, as "step time event". Equal seeds and equal programs give equal traces, byte for byte.
  std::string trace() const;
  /// A hash over all lines, including those no longer kept.
  std::uint64_t trace_hash() const noexcept;

 private:
  friend class Process;
  std::unique_ptr<detail::Core> core_;
};

/// Runs one seed: builds processes, works, crashes, checks. An error or an exception is a violation.
using Scenario = std::function<Result<void>(Simulation&)>;

struct ExploreOptions {
  std::string name;              ///< of the scenario, for the command that replays it
  std::uint64_t first_seed = 1;  ///< the seeds are consecutive from this one
  std::uint64_t seeds = 200;
  /// The number of seeds that are also run once per fault point they hit, with a crash at that point.
  std::uint64_t crash_everywhere = 0;
  std::uint64_t reports = 3;  ///< violations that are reported in full; the others are only counted
  Options simulation{};       ///< the seed in it is replaced
  std::string command = "build/release/tests/pawl_sim";
  std::function<void(std::string_view)> report{};  ///< gets the reports; empty: the standard error output
};

struct Summary {
  std::uint64_t seeds = 0;
  std::uint64_t crash_points = 0;  ///< crashes over all runs
  std::uint64_t violations = 0;
  /// The first violation, as reported: seed, message, end of the trace, command.
  std::uint64_t first_bad_seed = 0;
  std::string first_violation{};
};

/// Looks for a seed that breaks the scenario. Each violation is reported with its seed, the end of its trace
/// and the one command that replays it.
Summary explore(const ExploreOptions& options, const Scenario& scenario);

}  // namespace pawl::sim
