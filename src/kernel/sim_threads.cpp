// SPDX-License-Identifier: Apache-2.0
#include "kernel/sim_threads.hpp"

#include <cerrno>

#include "kernel/runtime_threads.hpp"
#include "pawl/assert.hpp"

namespace pawl::sim::detail {

Signal::Signal() {
  PAWL_ASSERT(sem_init(&semaphore_, 0, 0) == 0, "a private semaphore of value 0 can be made", errno);
}

Signal::~Signal() { sem_destroy(&semaphore_); }

void Signal::send() { PAWL_ASSERT(sem_post(&semaphore_) == 0, "the baton is passed once at a time", errno); }

void Signal::receive() {
  while (sem_wait(&semaphore_) != 0) PAWL_ASSERT(errno == EINTR, "only a signal interrupts a wait", errno);
}

JobThread::JobThread() : thread_([this] { run(); }) {}

JobThread::~JobThread() {
  assign({});
  go_.send();
  thread_.join();
}

void JobThread::resume() {
  go_.send();
  back_.receive();
}

void JobThread::park() {
  back_.send();
  go_.receive();
}

void JobThread::run() {
  pawl::detail::name_this_thread("pawl-sim-job");
  for (go_.receive(); work_; go_.receive()) {
    work_();
    work_ = nullptr;
    back_.send();
  }
}

JobThreads& JobThreads::of_this_thread() {
  thread_local JobThreads threads;
  return threads;
}

std::unique_ptr<JobThread> JobThreads::take() {
  if (idle_.empty()) return std::make_unique<JobThread>();
  auto thread = std::move(idle_.back());
  idle_.pop_back();
  return thread;
}

}  // namespace pawl::sim::detail
