// SPDX-License-Identifier: Apache-2.0
#pragma once

// Threads for simulated jobs. A job may block deep inside calls, so it needs a stack of its own; a baton
// makes sure that of all these threads and the simulation's own one exactly one moves.

#include <semaphore.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace pawl::sim::detail {

/// Passes the baton. POSIX semaphores: one futex call per pass, and the thread sanitizer understands them.
class Signal {
 public:
  Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal();

  void send();
  void receive();

 private:
  sem_t semaphore_{};
};

/// A thread that runs one piece of work at a time, and only between `resume` and the next `park`.
class JobThread {
 public:
  JobThread();
  ~JobThread();

  /// Sets the work that the next `resume` starts.
  void assign(std::function<void()> work) { work_ = std::move(work); }
  /// Called with the baton: lets this thread run until it parks or its work has ended.
  void resume();
  /// Called by the work: returns the baton and waits for the next `resume`.
  void park();

 private:
  void run();

  Signal go_;
  Signal back_;
  std::function<void()> work_;  // empty at a resume: the thread ends
  std::thread thread_;
};

/// Threads that wait for work. Making one costs more than running a small job.
class JobThreads {
 public:
  /// Those of the calling thread; shared by all simulations it runs, one after the other.
  static JobThreads& of_this_thread();

  std::unique_ptr<JobThread> take();
  void give_back(std::unique_ptr<JobThread> thread) { idle_.push_back(std::move(thread)); }

 private:
  std::vector<std::unique_ptr<JobThread>> idle_;
};

}  // namespace pawl::sim::detail
