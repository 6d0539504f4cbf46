// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inside of a simulation: processes with their lanes and workers, and the scheduler that picks among
// them. Only the thread with the baton touches this, so there are no locks.

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/runtime_timers.hpp"
#include "kernel/sim_clock.hpp"
#include "kernel/sim_threads.hpp"
#include "kernel/sim_trace.hpp"
#include "pawl/random.hpp"
#include "pawl/sim.hpp"

namespace pawl::sim::detail {

class SimLane;
class SimThreadPool;

/// The state of a process.
struct Node {
  Core& core;
  std::string name;
  std::string label;  // the name, with a number from the second process of that name on
  Duration spawned_at;
  Clock clock;
  Random random;
  Duration jumped{0};
  bool dead = false;
  bool crashed_inline = false;    // below a caller outside any task, which learns of it when it waits
  std::vector<SimLane*> lanes{};  // in the order of opening
  std::vector<SimThreadPool*> workers{};

  Instant instant() const;
  Time now() const;
  /// The virtual time at which `instant()` reaches `deadline`.
  Duration reaches(Instant deadline) const;
};

class SimLane final : public Lane {
 public:
  SimLane(Node& node, std::string_view name);
  ~SimLane() override;

  void post(Task task) override;
  bool run_here(Task& task) override;
  TimerId after(Duration delay, Task task) override;
  bool cancel(TimerId timer) override;

 private:
  friend class Core;
  Node& node_;
  const std::string label_;
  std::deque<Task> queue_;
  pawl::detail::TimerQueue timers_;
  std::uint64_t begun_ = 0;
  bool busy_ = false;  // a task runs; another one must not begin below it
};

/// A job from its submission to its end.
struct SimJob {
  SimThreadPool& workers;
  std::uint64_t number;
  Job work;
  Duration ready_at;
  std::stop_source stop{};
  std::unique_ptr<JobThread> thread{};  // from its beginning on
  bool parked = false;
  bool done = false;
  std::exception_ptr error{};
  // What a parked job waits for; with neither it only lets others go first.
  Gate* gate = nullptr;
  const SimThreadPool* drained = nullptr;
  std::optional<Instant> deadline{};
};

class SimThreadPool final : public ThreadPool {
 public:
  SimThreadPool(Node& node, std::string_view name, Options options);
  ~SimThreadPool() override;

  Result<std::stop_source> submit(Job job) override;
  void resize(std::size_t threads) override { options_.threads = threads; }

 private:
  friend class Core;
  std::size_t free_threads() const { return options_.threads - std::min(options_.threads, running_.size()); }

  Node& node_;
  const std::string label_;
  Options options_;
  std::uint64_t submitted_ = 0;
  bool stopping_ = false;
  std::deque<std::unique_ptr<SimJob>> queued_;
  std::vector<std::unique_ptr<SimJob>> running_;  // begun and not yet ended
};

/// What runs at the moment; none outside any task.
struct Context {
  Node& node;
  SimJob* job;     // null in a task of a lane
  int exceptions;  // in flight when it began
};

class Core {
 public:
  explicit Core(const Options& options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  std::unique_ptr<Node> add_node(std::string name);

  /// Runs until `done`, or until nothing is left to do before `horizon`: then false. Throws what leaves a
  /// task.
  bool run(const std::function<bool()>& done, std::optional<Duration> horizon = std::nullopt);
  bool step(std::optional<Duration> horizon = std::nullopt);
  void advance(Duration to);
  /// By every call that runs the simulation from outside: throws what a destructor had to hold back.
  void enter();

  /// Runs a task of an idle lane on the caller's thread; false where the seed decides that the lane is not
  /// idle enough, or where a thread of a real lane could not.
  bool run_inline(SimLane& lane, Task& task);
  bool wait(Node& node, Gate& gate, std::optional<Duration> timeout);
  bool fault(Node& node, std::string_view name);
  void crash(Node& node, std::string_view where);
  /// Waits in a destructor until the workers' jobs have ended.
  void drain(SimThreadPool& workers);
  /// Crashes everything and throws.
  [[noreturn]] void stuck(std::string_view reason);
  [[noreturn]] void violated(std::string_view text);

  void arm(std::string_view point, const Fault& fault);
  void disarm(std::string_view point);
  std::uint64_t hits(std::string_view point) const;

  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    trace.line(steps, time, text, std::forward<Args>(args)...);
  }
  /// The delay before a new job may begin.
  Duration draw_job_delay();
  const Context* context() const noexcept { return context_; }
  /// True in a destructor that runs because of an exception, where none may be thrown.
  bool unwinding() const noexcept;
  std::exception_ptr held_back() const noexcept { return held_back_; }

  const Options options;
  Random scenario;
  Trace trace;
  Duration time{0};
  std::uint64_t steps = 0;
  std::uint64_t total_hits = 0;
  std::uint64_t crash_at = 0;
  std::uint64_t crashes = 0;
  std::vector<std::unique_ptr<Process>> processes;

 private:
  struct Candidate {
    SimLane* lane;  // else a job
    SimJob* job;
    bool timer;
  };
  struct Point {
    std::uint64_t hits = 0;
    std::vector<Fault> faults{};
  };

  void gather();
  bool can_go_on(const SimJob& job) const;
  std::optional<Duration> next_deadline() const;
  void run_task(SimLane& lane, bool timer);
  std::exception_ptr perform_task(SimLane& lane, Task& task);
  void run_job(SimJob& job);
  void begin(SimJob& job);
  std::exception_ptr resume(SimJob& job);
  void park();
  void let_others_go_first();
  bool throw_or(const Node& node, bool default_value) const;
  bool wait_in_job(Node& node, Gate& gate, std::optional<Instant> deadline);
  bool wait_outside(Node& node, Gate& gate, std::optional<Instant> deadline);
  std::optional<Fault::Kind> decide(const Point& point);
  void kill(Node& node);
  void unwind_jobs(Node& node);
  void abandon();

  Random schedule_;
  Random faults_;
  Random delays_;
  Random nodes_;
  Random inline_;
  JobThreads& threads_;
  std::vector<Node*> live_;  // in the order of spawning
  std::vector<Candidate> candidates_;
  std::map<std::string, std::uint64_t, std::less<>> spawned_;
  std::map<std::string, Point, std::less<>> points_;
  Context* context_ = nullptr;
  std::exception_ptr held_back_;
};

}  // namespace pawl::sim::detail
