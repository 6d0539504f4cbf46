// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "kernel/runtime_threads.hpp"
#include "pawl/assert.hpp"

namespace pawl::detail {

OsThreadPool::OsThreadPool(std::string name, Options options)
    : name_(std::move(name)), most_queued_(options.queue), most_busy_(options.threads) {
  PAWL_ASSERT(options.threads > 0, "workers have at least one thread", name_);
}

OsThreadPool::~OsThreadPool() {
  std::deque<Entry> dropped;
  std::vector<std::stop_source> running;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(queue_);
    running = running_;
    wake_.notify_all();
  }
  // Stop callbacks are the user's code and may submit again, so they run outside the mutex.
  for (auto& entry : dropped) entry.stop.request_stop();
  for (auto& stop : running) stop.request_stop();
  for (auto& thread : threads_) {
    PAWL_ASSERT(std::this_thread::get_id() != thread.get_id(), "workers are not destroyed by their own job",
                name_);
    thread.join();
  }
}

Result<std::stop_source> OsThreadPool::submit(Job job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    return fail(Code::stopped, "the workers are being destroyed and take no new job", {{"workers", name_}});
  }
  if (busy_ + queue_.size() >= most_busy_ + most_queued_) {
    return fail(Code::overloaded,
                fmt::format("{} jobs run and {} wait; try again when one has ended, or open the workers with "
                            "more threads or a longer queue",
                            most_busy_, most_queued_),
                {{"workers", name_}});
  }
  std::stop_source stop;
  queue_.push_back({std::move(job), stop});
  if (queue_.size() <= idle_) {
    wake_.notify_one();
  } else if (threads_.size() < most_busy_) {
    start_thread();
  }
  return stop;
}

void OsThreadPool::resize(std::size_t threads) {
  PAWL_ASSERT(threads > 0, "workers have at least one thread", name_);
  const std::lock_guard lock(mutex_);
  most_busy_ = threads;
  if (stopping_) return;
  for (auto waiting = queue_.size(); waiting > idle_ && threads_.size() < most_busy_; --waiting)
    start_thread();
  wake_.notify_all();
}

void OsThreadPool::start_thread() {
  running_.emplace_back(std::nostopstate);
  threads_.emplace_back([this, index = threads_.size()] { run(index); });
}

void OsThreadPool::run(std::size_t index) {
  name_this_thread(fmt::format("{}-{}", name_, index));
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || (!queue_.empty() && busy_ < most_busy_); });
    --idle_;
    if (queue_.empty()) return;  // stopping, and the rest was dropped
    ++busy_;
    {
      Entry entry = std::move(queue_.front());
      queue_.pop_front();
      running_[index] = entry.stop;
      lock.unlock();
      entry.job(entry.stop.get_token());
    }  // destroys what the job owns before another job may take its place
    lock.lock();
    --busy_;
  }
}

}  // namespace pawl::detail
