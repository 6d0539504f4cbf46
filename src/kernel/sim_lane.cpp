// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernel/sim_core.hpp"
#include "pawl/assert.hpp"

namespace pawl::sim::detail {

SimLane::SimLane(Node& node, std::string_view name)
    : node_(node), label_(fmt::format("{}/{}", node.label, name)) {
  node_.lanes.push_back(this);
}

SimLane::~SimLane() {
  PAWL_ASSERT(!busy_, "a lane is not destroyed by its own task", label_);
  std::erase(node_.lanes, this);
  // A dropped task may own something that posts here again when it is destroyed; nothing runs it any more.
  const auto tasks = std::exchange(queue_, {});
  const auto timers = timers_.take_all();
}

void SimLane::post(Task task) {
  if (!node_.dead) queue_.push_back(std::move(task));
}

bool SimLane::run_here(Task& task) { return node_.core.run_inline(*this, task); }

TimerId SimLane::after(Duration delay, Task task) {
  if (node_.dead) return timers_.skip();
  if (delay > Duration::zero()) {
    return timers_.add(pawl::detail::deadline_after(node_.instant(), delay), std::move(task));
  }
  queue_.push_back(std::move(task));
  return timers_.skip();
}

bool SimLane::cancel(TimerId timer) { return timers_.remove(timer).has_value(); }

SimThreadPool::SimThreadPool(Node& node, std::string_view name, Options options)
    : node_(node), label_(fmt::format("{}/{}", node.label, name)), options_(options) {
  PAWL_ASSERT(options.threads > 0, "workers have at least one thread", label_);
  node_.workers.push_back(this);
}

SimThreadPool::~SimThreadPool() {
  stopping_ = true;
  const auto dropped = std::exchange(queued_, {});
  std::vector<std::stop_source> stops;
  for (const auto& job : running_) stops.push_back(job->stop);
  for (const auto& job : dropped) stops.push_back(job->stop);
  for (auto& stop : stops) stop.request_stop();
  node_.core.drain(*this);
  std::erase(node_.workers, this);
}

Result<std::stop_source> SimThreadPool::submit(Job job) {
  if (stopping_ || node_.dead) {
    return fail(Code::stopped, "the workers are being destroyed and take no new job", {{"workers", label_}});
  }
  if (running_.size() + queued_.size() >= options_.threads + options_.queue) {
    return fail(Code::overloaded,
                fmt::format("{} jobs run and {} wait; try again when one has ended, or open the workers with "
                            "more threads or a longer queue",
                            running_.size(), queued_.size()),
                {{"workers", label_}});
  }
  const auto ready_at = node_.core.time + node_.core.draw_job_delay();
  queued_.push_back(std::make_unique<SimJob>(*this, ++submitted_, std::move(job), ready_at));
  return queued_.back()->stop;
}

}  // namespace pawl::sim::detail
