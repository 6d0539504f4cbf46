// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <cerrno>

#include "kernel/runtime_threads.hpp"
#include "pawl/assert.hpp"
#include "pawl/runtime.hpp"

namespace pawl {
namespace {

Random random_from_system() {
  Random::State state{};
  ssize_t got = 0;
  do {
    got = getrandom(state.data(), sizeof(state), 0);
  } while (got < 0 && errno == EINTR);
  PAWL_ASSERT(got == sizeof(state), "the system gives 32 random bytes at once", got, errno);
  return Random(state);
}

}  // namespace

// All under the mutex: a waiter that finds the gate open may destroy it as soon as it gets the mutex.
void Gate::open() noexcept {
  const std::lock_guard lock(mutex_);
  open_.store(true, std::memory_order_release);
  opened_.notify_all();
}

ThreadRuntime::ThreadRuntime() : random_(random_from_system()) {}
ThreadRuntime::~ThreadRuntime() = default;

Time ThreadRuntime::now() { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }

Instant ThreadRuntime::instant() { return std::chrono::floor<Duration>(std::chrono::steady_clock::now()); }

std::uint64_t ThreadRuntime::random() {
  const std::lock_guard lock(random_mutex_);
  return random_.next();
}

std::unique_ptr<Lane> ThreadRuntime::open_lane(std::string name) {
  return std::make_unique<detail::ThreadLane>(std::move(name));
}

std::unique_ptr<ThreadPool> ThreadRuntime::open_thread_pool(std::string name, ThreadPool::Options options) {
  return std::make_unique<detail::OsThreadPool>(std::move(name), options);
}

bool ThreadRuntime::wait(Gate& gate, std::optional<Duration> timeout) {
  PAWL_ASSERT(!detail::on_lane_thread(), "a lane task does not wait; post the rest of the work instead");
  // Also an open gate is looked at under the mutex, see Gate::open.
  std::unique_lock lock(gate.mutex_);
  const auto is_open = [&] { return gate.is_open(); };
  if (timeout) return gate.opened_.wait_until(lock, detail::deadline_after(instant(), *timeout), is_open);
  gate.opened_.wait(lock, is_open);
  return true;
}

}  // namespace pawl
