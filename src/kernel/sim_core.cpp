// SPDX-License-Identifier: Apache-2.0
#include "kernel/sim_core.hpp"

#include <algorithm>

#include "pawl/assert.hpp"

namespace pawl::sim::detail {
namespace {

/// Each use of randomness has a sequence of its own, so that arming a fault does not change the schedule.
Random stream(std::uint64_t seed, int number) {
  std::uint64_t derived = 0;
  for (int i = 0; i <= number; ++i) derived = splitmix64(seed);
  return Random(derived);
}

void perform(SimJob& job, const Node& node) {
  try {
    job.work(job.stop.get_token());
  } catch (const Crashed&) {
    PAWL_ASSERT(node.dead, "only a crashed process throws Crashed", node.label);
  } catch (...) {
    job.error = std::current_exception();
  }
  job.work = nullptr;
  job.done = true;
}

}  // namespace

Core::Core(const Options& given)
    : options(given),
      scenario(stream(given.seed, 0)),
      trace(given.trace_lines),
      crash_at(given.crash_at),
      schedule_(stream(given.seed, 1)),
      faults_(stream(given.seed, 2)),
      delays_(stream(given.seed, 3)),
      nodes_(stream(given.seed, 4)),
      inline_(stream(given.seed, 5)),
      threads_(JobThreads::of_this_thread()) {}

Core::~Core() = default;

std::unique_ptr<Node> Core::add_node(std::string name) {
  const auto count = ++spawned_[name];
  auto label = count == 1 ? name : fmt::format("{}#{}", name, count);
  note("{} starts", label);
  auto node = std::make_unique<Node>(
      Node{*this, std::move(name), std::move(label), time, Clock(time), Random(nodes_.next())});
  live_.push_back(node.get());
  return node;
}

void Core::enter() {
  PAWL_ASSERT(context_ == nullptr, "a task does not run the simulation that runs it");
  if (held_back_) std::rethrow_exception(std::exchange(held_back_, nullptr));
}

bool Core::run(const std::function<bool()>& done, std::optional<Duration> horizon) {
  const auto limit = steps + options.step_limit;
  while (!done()) {
    if (steps >= limit) {
      stuck(fmt::format("no end after {} steps; a livelock, or a timer that sets itself again",
                        options.step_limit));
    }
    if (!step(horizon)) return false;
  }
  return true;
}

bool Core::step(std::optional<Duration> horizon) {
  gather();
  if (candidates_.empty()) {
    const auto next = next_deadline();
    if (!next || (horizon && *next > *horizon)) return false;
    advance(*next);
    return true;
  }
  const auto picked = candidates_[schedule_.below(candidates_.size())];
  ++steps;
  try {
    picked.job != nullptr ? run_job(*picked.job) : run_task(*picked.lane, picked.timer);
  } catch (...) {
    abandon();
    throw;
  }
  if (context_ == nullptr) enter();
  return true;
}

void Core::advance(Duration to) {
  PAWL_ASSERT(to >= time, "virtual time does not go back", to.count(), time.count());
  if (to == time) return;
  ++steps;
  time = to;
  note("time");
}

Duration Core::draw_job_delay() {
  if (options.job_delay_max <= Duration::zero()) return Duration::zero();
  return Duration{delays_.below(static_cast<std::uint64_t>(options.job_delay_max.count()) + 1)};
}

// The order of the candidates is that of spawning, opening and submitting: the same in every run.
void Core::gather() {
  candidates_.clear();
  for (const Node* node : live_) {
    const auto now = node->instant();
    for (SimLane* lane : node->lanes) {
      if (lane->busy_) continue;
      if (!lane->queue_.empty()) candidates_.push_back({lane, nullptr, false});
      if (const auto next = lane->timers_.next(); next && *next <= now) {
        candidates_.push_back({lane, nullptr, true});
      }
    }
    for (SimThreadPool* workers : node->workers) {
      for (const auto& job : workers->running_) {
        if (can_go_on(*job)) candidates_.push_back({nullptr, job.get(), false});
      }
      // Free threads take jobs from the front of the queue; each may be slow to begin.
      const auto takes = std::min(workers->free_threads(), workers->queued_.size());
      for (std::size_t i = 0; i < takes; ++i) {
        const auto& job = workers->queued_[i];
        if (job->ready_at <= time) candidates_.push_back({nullptr, job.get(), false});
      }
    }
  }
}

bool Core::can_go_on(const SimJob& job) const {
  if (!job.parked) return false;
  if (job.deadline && job.workers.node_.instant() >= *job.deadline) return true;
  if (job.gate != nullptr) return job.gate->is_open();
  return job.drained == nullptr || job.drained->running_.empty();
}

std::optional<Duration> Core::next_deadline() const {
  std::optional<Duration> next;
  const auto consider = [&](Duration at) { next = next ? std::min(*next, at) : at; };
  for (const Node* node : live_) {
    for (const SimLane* lane : node->lanes) {
      if (lane->busy_) continue;
      if (const auto deadline = lane->timers_.next()) consider(node->reaches(*deadline));
    }
    for (const SimThreadPool* workers : node->workers) {
      for (const auto& job : workers->running_) {
        if (job->parked && job->deadline) consider(node->reaches(*job->deadline));
      }
      const auto takes = std::min(workers->free_threads(), workers->queued_.size());
      for (std::size_t i = 0; i < takes; ++i) consider(workers->queued_[i]->ready_at);
    }
  }
  return next;
}

void Core::run_task(SimLane& lane, bool timer) {
  Task task;
  if (timer) {
    task = *lane.timers_.pop_due(lane.node_.instant());
  } else {
    task = std::move(lane.queue_.front());
    lane.queue_.pop_front();
  }
  note("{} {} {}", lane.label_, timer ? "timer" : "task", ++lane.begun_);
  if (const auto error = perform_task(lane, task)) std::rethrow_exception(error);
}

/// Runs the task as the lane does; returns what leaves it, unless that is a crash of its own process.
std::exception_ptr Core::perform_task(SimLane& lane, Task& task) {
  Context here{lane.node_, nullptr, std::uncaught_exceptions()};
  Context* const outer = std::exchange(context_, &here);
  lane.busy_ = true;
  std::exception_ptr error;
  try {
    task();
  } catch (const Crashed&) {
    PAWL_ASSERT(lane.node_.dead, "only a crashed process throws Crashed", lane.label_);
  } catch (...) {
    error = std::current_exception();
  }
  task = nullptr;
  lane.busy_ = false;
  context_ = outer;
  return error;
}

/// Nothing leaves this by an exception: a real lane's task ends the process instead, so callers are not
/// prepared for one. They learn of a crash, or of what the task threw, where they next wait.
bool Core::run_inline(SimLane& lane, Task& task) {
  Node& node = lane.node_;
  if (node.dead || unwinding() || lane.busy_ || !lane.queue_.empty()) return false;
  // A task of a lane does not run another one below it, and other processes have threads of their own.
  if (context_ != nullptr && (context_->job == nullptr || &context_->node != &node)) return false;
  if (inline_.below(2) == 0) return false;
  ++steps;
  note("{} inline {}", lane.label_, ++lane.begun_);
  if (const auto error = perform_task(lane, task)) {
    if (!held_back_) held_back_ = error;
    abandon();
  }
  if (node.dead && context_ == nullptr) node.crashed_inline = true;
  return true;
}

void Core::run_job(SimJob& job) {
  const bool begins = !job.thread;
  note("{} job {} {}", job.workers.label_, job.number, begins ? "begins" : "goes on");
  if (begins) begin(job);
  if (const auto error = resume(job)) std::rethrow_exception(error);
}

void Core::begin(SimJob& job) {
  auto& workers = job.workers;
  const auto queued = std::ranges::find(workers.queued_, &job, &std::unique_ptr<SimJob>::get);
  workers.running_.push_back(std::move(*queued));
  workers.queued_.erase(queued);
  job.thread = threads_.take();
  job.thread->assign([&job] { perform(job, job.workers.node_); });
}

std::exception_ptr Core::resume(SimJob& job) {
  Context here{job.workers.node_, &job, 0};
  Context* const outer = std::exchange(context_, &here);
  job.parked = false;
  job.thread->resume();
  context_ = outer;
  if (!job.done) return nullptr;

  note("{} job {} ends", job.workers.label_, job.number);
  const bool dead = job.workers.node_.dead;
  auto& running = job.workers.running_;
  const auto entry = std::ranges::find(running, &job, &std::unique_ptr<SimJob>::get);
  const auto ended = std::move(*entry);
  running.erase(entry);
  threads_.give_back(std::move(ended->thread));
  return dead ? nullptr : ended->error;
}

void Core::park() {
  SimJob& job = *context_->job;
  job.parked = true;
  job.thread->park();
}

// A switch of threads costs more than all else in a step, so the job itself draws whether it continues.
void Core::let_others_go_first() {
  SimJob& job = *context_->job;
  job.parked = true;
  gather();
  if (schedule_.below(candidates_.size()) == 0) {
    job.parked = false;
  } else {
    park();
  }
}

}  // namespace pawl::sim::detail
