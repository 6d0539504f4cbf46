// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "kernel/runtime_threads.hpp"
#include "pawl/assert.hpp"

namespace pawl::detail {
namespace {

thread_local bool is_lane_thread = false;

Instant monotonic_now() { return std::chrono::floor<Duration>(std::chrono::steady_clock::now()); }

}  // namespace

void name_this_thread(const std::string& name) {
  // Fails only for an overlong name; the name is for debugging only.
  (void)pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

bool on_lane_thread() noexcept { return is_lane_thread; }

ThreadLane::ThreadLane(std::string name) : name_(std::move(name)), thread_([this] { run(); }) {}

ThreadLane::~ThreadLane() {
  PAWL_ASSERT(std::this_thread::get_id() != thread_.get_id(), "a lane is not destroyed by its own task",
              name_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake();
  }
  thread_.join();
  // A dropped task may own something that posts here again when it is destroyed; the members must still work.
  const auto dropped_tasks = std::exchange(queue_, {});
  const auto dropped_timers = timers_.take_all();
}

void ThreadLane::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  queue_.push_back(std::move(task));
  wake();
}

bool ThreadLane::run_here(Task& task) {
  if (is_lane_thread) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || lent_ || !asleep_ || !queue_.empty()) return false;
    lent_ = true;
  }
  is_lane_thread = true;
  task();
  task = nullptr;
  is_lane_thread = false;
  const std::lock_guard lock(mutex_);
  lent_ = false;
  const auto earliest = timers_.next();
  const bool sooner = earliest && (!asleep_until_ || *earliest < *asleep_until_);
  // Its own thread may have woken up meanwhile, and waits for this.
  if (!asleep_ || stopping_ || !queue_.empty() || sooner) {
    asleep_ = false;
    wake_.notify_one();
  }
  return true;
}

TimerId ThreadLane::after(Duration delay, Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return timers_.skip();
  if (delay <= Duration::zero()) {
    queue_.push_back(std::move(task));
    wake();
    return timers_.skip();
  }
  const auto deadline = deadline_after(monotonic_now(), delay);
  const auto earliest = timers_.next();
  const auto timer = timers_.add(deadline, std::move(task));
  if (!earliest || deadline < *earliest) wake();
  return timer;
}

bool ThreadLane::cancel(TimerId timer) {
  std::optional<Task> cancelled;  // outlives the lock, for the task's destructor
  const std::lock_guard lock(mutex_);
  cancelled = timers_.remove(timer);
  return cancelled.has_value();
}

// Under the mutex: a caller that posts the task which destroys this lane must return before that.
void ThreadLane::wake() {
  if (!asleep_ || lent_) return;
  asleep_ = false;
  wake_.notify_one();
}

void ThreadLane::sleep(std::unique_lock<std::mutex>& lock) {
  asleep_ = true;
  asleep_until_ = timers_.next();
  if (const auto deadline = asleep_until_) {
    wake_.wait_until(lock, *deadline);
  } else {
    wake_.wait(lock);
  }
  asleep_ = false;
}

void ThreadLane::run() {
  name_this_thread(name_);
  is_lane_thread = true;
  std::vector<Task> batch;
  std::unique_lock lock(mutex_);
  while (!stopping_ || lent_) {
    if (lent_) {
      wake_.wait(lock);
      continue;
    }
    if (timers_.next()) {
      const auto now = monotonic_now();
      while (auto due = timers_.pop_due(now)) queue_.push_back(*std::move(due));
    }
    if (queue_.empty()) {
      sleep(lock);
      continue;
    }
    batch.swap(queue_);
    lock.unlock();
    for (auto& task : batch) {
      if (stopping_.load(std::memory_order_relaxed)) break;
      task();
      task = nullptr;  // destroys what the task owns before the next one begins
    }
    batch.clear();
    lock.lock();
  }
}

}  // namespace pawl::detail
