// SPDX-License-Identifier: Apache-2.0

// Waiting, fault points, crashes: the calls that may not return to the code that made them.

#include <algorithm>

#include "kernel/sim_core.hpp"
#include "pawl/assert.hpp"

namespace pawl::sim::detail {
namespace {

constexpr std::size_t kTailLines = 40;

SimJob* find_parked(const std::vector<std::unique_ptr<SimJob>>& running) {
  const auto found = std::ranges::find_if(running, &SimJob::parked, &std::unique_ptr<SimJob>::operator*);
  return found == running.end() ? nullptr : found->get();
}

}  // namespace

bool Core::unwinding() const noexcept {
  return std::uncaught_exceptions() > (context_ != nullptr ? context_->exceptions : 0);
}

// For calls into a dead process: its code must not continue, but destructors and other processes must not be
// affected.
bool Core::throw_or(const Node& node, bool default_value) const {
  if (context_ != nullptr && &context_->node == &node && !unwinding()) throw Crashed{};
  return default_value;
}

bool Core::wait(Node& node, Gate& gate, std::optional<Duration> timeout) {
  if (context_ == nullptr && !unwinding()) {
    if (held_back_) enter();
    if (std::exchange(node.crashed_inline, false)) throw Crashed{};
  }
  if (node.dead) return throw_or(node, false);
  if (gate.is_open()) return true;
  std::optional<Instant> deadline;
  if (timeout) deadline = pawl::detail::deadline_after(node.instant(), *timeout);
  return context_ != nullptr ? wait_in_job(node, gate, deadline) : wait_outside(node, gate, deadline);
}

bool Core::wait_in_job(Node& node, Gate& gate, std::optional<Instant> deadline) {
  PAWL_ASSERT(context_->job != nullptr, "a lane task does not wait; post the rest of the work instead",
              context_->node.label);
  PAWL_ASSERT(&context_->node == &node, "a job waits on the runtime of its own process", node.label,
              context_->node.label);
  SimJob& job = *context_->job;
  job.gate = &gate;
  job.deadline = deadline;
  park();
  job.gate = nullptr;
  job.deadline.reset();
  return node.dead ? throw_or(node, false) : gate.is_open();
}

bool Core::wait_outside(Node& node, Gate& gate, std::optional<Instant> deadline) {
  const auto done = [&] { return gate.is_open() || node.dead || (deadline && node.instant() >= *deadline); };
  try {
    enter();
    for (;;) {
      std::optional<Duration> horizon;
      if (deadline) horizon = node.reaches(*deadline);
      if (run(done, horizon)) break;
      if (!horizon) stuck("deadlock: the test waits for a gate that nothing can open any more");
      advance(*horizon);
    }
  } catch (...) {
    if (!unwinding()) throw;
    held_back_ = std::current_exception();
    return false;
  }
  if (!node.dead) return gate.is_open();
  if (!unwinding()) throw Crashed{};
  return false;
}

void Core::drain(SimThreadPool& workers) {
  const auto drained = [&] { return workers.running_.empty(); };
  if (context_ != nullptr && context_->job != nullptr && !workers.node_.dead && !drained()) {
    SimJob& job = *context_->job;
    PAWL_ASSERT(&job.workers != &workers, "workers are not destroyed by their own job", workers.label_);
    job.drained = &workers;
    park();
    job.drained = nullptr;
  }
  try {
    if (!workers.node_.dead && !run(drained)) {
      stuck(fmt::format("deadlock: {} are destroyed, but a job of theirs does not end", workers.label_));
    }
  } catch (...) {
    held_back_ = std::current_exception();
  }
  if (workers.node_.dead) unwind_jobs(workers.node_);
  PAWL_ASSERT(drained(), "workers are not destroyed by their own job", workers.label_);
}

void Core::stuck(std::string_view reason) {
  auto details = std::string{};
  for (const Node* node : live_) {
    for (const SimThreadPool* workers : node->workers) {
      for (const auto& job : workers->running_) {
        details += fmt::format("{} job {} waits for {}\n", workers->label_, job->number,
                               job->gate != nullptr ? "a gate" : "others");
      }
    }
  }
  note("{}", reason);
  details += trace.text(kTailLines);
  abandon();
  throw Stuck(std::string(reason), details);
}

void Core::violated(std::string_view text) {
  note("violation: {}", text);
  if (context_ == nullptr) abandon();  // else it leaves the task first
  throw Violation(std::string(text));
}

void Core::arm(std::string_view point, const Fault& fault) {
  points_[std::string(point)].faults.push_back(fault);
}

void Core::disarm(std::string_view point) { points_[std::string(point)].faults.clear(); }

std::uint64_t Core::hits(std::string_view point) const {
  const auto found = points_.find(point);
  return found == points_.end() ? 0 : found->second.hits;
}

std::optional<Fault::Kind> Core::decide(const Point& point) {
  if (total_hits == crash_at) return Fault::Kind::crash;
  std::optional<Fault::Kind> kind;
  for (const Fault& fault : point.faults) {
    const bool strikes = fault.hit != 0 ? fault.hit == point.hits : faults_.chance_ppm(fault.ppm);
    if (strikes && kind != Fault::Kind::crash) kind = fault.kind;
  }
  return kind;
}

bool Core::fault(Node& node, std::string_view name) {
  if (node.dead) return throw_or(node, true);
  PAWL_ASSERT(context_ == nullptr || &context_->node == &node, "a fault point is hit by its own process",
              name, node.label);
  if (context_ != nullptr && context_->job != nullptr) {
    let_others_go_first();
    if (node.dead) return throw_or(node, true);
  }
  auto found = points_.find(name);
  if (found == points_.end()) found = points_.emplace(name, Point{}).first;
  Point& point = found->second;
  ++point.hits;
  ++total_hits;
  const auto kind = decide(point);
  if (kind == Fault::Kind::crash) {
    crash(node, fmt::format(" at {} hit {}", name, point.hits));
    if (!unwinding()) throw Crashed{};
    return true;
  }
  note("{} {} {} hit {}", node.label, kind ? "fails at" : "passes", name, point.hits);
  return kind.has_value();
}

void Core::crash(Node& node, std::string_view where) {
  note("{} crashes{}", node.label, where);
  ++crashes;
  kill(node);
}

void Core::kill(Node& node) {
  node.dead = true;
  std::erase(live_, &node);
  // Take everything before destroying anything: destructors of tasks may call back.
  std::vector<std::deque<Task>> tasks;
  std::vector<std::map<std::pair<Instant, TimerId>, Task>> timers;
  std::vector<std::deque<std::unique_ptr<SimJob>>> jobs;
  for (SimLane* lane : node.lanes) {
    tasks.push_back(std::exchange(lane->queue_, {}));
    timers.push_back(lane->timers_.take_all());
  }
  jobs.reserve(node.workers.size());
  for (SimThreadPool* workers : node.workers) jobs.push_back(std::exchange(workers->queued_, {}));
  unwind_jobs(node);
}

void Core::unwind_jobs(Node& node) {
  // Unwinding may destroy other pools, so the search restarts each time.
  const auto next = [&]() -> SimJob* {
    for (const SimThreadPool* workers : node.workers) {
      if (SimJob* job = find_parked(workers->running_)) return job;
    }
    return nullptr;
  };
  while (SimJob* job = next()) (void)resume(*job);
}

void Core::abandon() {
  while (!live_.empty()) kill(*live_.front());
}

}  // namespace pawl::sim::detail
