// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lanes and workers of ThreadRuntime.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernel/runtime_timers.hpp"
#include "pawl/runtime.hpp"

namespace pawl::detail {

/// Names the calling thread for debuggers and `top`; Linux keeps 15 characters.
void name_this_thread(const std::string& name);

/// True on the thread of a lane.
bool on_lane_thread() noexcept;

/// One thread, one queue. The thread itself waits for the next timer, so a timer costs no further thread.
class ThreadLane final : public Lane {
 public:
  explicit ThreadLane(std::string name);
  ~ThreadLane() override;

  void post(Task task) override;
  bool run_here(Task& task) override;
  TimerId after(Duration delay, Task task) override;
  bool cancel(TimerId timer) override;

 private:
  void run();
  void sleep(std::unique_lock<std::mutex>& lock);
  void wake();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> queue_;
  TimerQueue timers_;
  bool asleep_ = false;
  bool lent_ = false;                      // another thread runs a task for it
  std::optional<Instant> asleep_until_{};  // nothing: until it is woken
  std::atomic<bool> stopping_ = false;     // written under the mutex, read between tasks without it
  std::thread thread_;
};

/// Threads start when a job finds none idle, up to the limit, and stay until the end.
class OsThreadPool final : public ThreadPool {
 public:
  OsThreadPool(std::string name, Options options);
  ~OsThreadPool() override;

  Result<std::stop_source> submit(Job job) override;
  void resize(std::size_t threads) override;

 private:
  struct Entry {
    Job job;
    std::stop_source stop;
  };

  void start_thread();
  void run(std::size_t index);

  const std::string name_;
  const std::size_t most_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t most_busy_;
  std::deque<Entry> queue_;
  std::size_t busy_ = 0;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::stop_source> running_;  // by thread index
  std::vector<std::thread> threads_;
};

}  // namespace pawl::detail
