// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The interface between Pawl and the system: clock, randomness, threads. Production uses `ThreadRuntime`;
/// tests use the deterministic simulation in `pawl/sim.hpp`. Code that takes a `Runtime&` runs on both
/// unchanged.
///
///     pawl::ThreadRuntime runtime;
///     auto lane = runtime.open_lane("decide");                 // tasks run one after the other
///     auto workers = runtime.open_thread_pool("io", {.threads = 4});  // for blocking jobs
///     pawl::Gate done;
///     lane->post([&] {
///       (void)workers->submit([&](std::stop_token) { fetch(); done.open(); });
///     });
///     runtime.wait(done);

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/random.hpp"
#include "pawl/time.hpp"

namespace pawl {

using Task = std::move_only_function<void()>;
using Job = std::move_only_function<void(std::stop_token)>;

/// A flag that opens once and stays open; threads wait for it through `Runtime::wait`. Thread-safe. A gate
/// may be destroyed when `wait` has returned true; `is_open` alone does not mean that `open` has
/// returned.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() = default;

  void open() noexcept;
  bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }

 private:
  friend class ThreadRuntime;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable opened_;
};

/// Identifies a timer of a lane; never reused within the lane.
enum class TimerId : std::uint64_t {};

/// Runs tasks one at a time in the order they were posted. Tasks must not block, except on a store's own I/O.
/// Thread-safe. Destroying a lane drops queued tasks and waits for the running one. A task must not
/// destroy its own lane.
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  virtual void post(Task task) = 0;

  /// Runs `task` on the calling thread in place of the lane, which saves a wake-up. False, without any
  /// effect, if the lane is not idle or does not support this. The caller must not hold a lock that the task
  /// takes.
  virtual bool run_here(Task&) { return false; }

  /// Posts `task` after `delay` on the monotonic clock; at once if `delay` is zero or negative.
  virtual TimerId after(Duration delay, Task task) = 0;

  /// True if the task will not run; false if it has run, is queued already or was cancelled before.
  virtual bool cancel(TimerId timer) = 0;
};

/// A bounded pool of threads for jobs that block. Thread-safe. Destroying it drops queued jobs, asks
/// running ones to stop and waits for them.
class ThreadPool {
 public:
  struct Options {
    std::size_t threads = 4;   ///< concurrent jobs; at least 1
    std::size_t queue = 1024;  ///< queued jobs; more are refused with `overloaded`
  };

  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  virtual ~ThreadPool() = default;

  /// Queues a job. The returned source asks this job to stop; dropping it has no effect. An uncaught
  /// exception in a job ends the process. Errors: `overloaded`, `stopped`.
  virtual Result<std::stop_source> submit(Job job) = 0;

  /// Changes the number of concurrent jobs, at least 1. Running jobs are not interrupted.
  virtual void resize(std::size_t threads) = 0;
};

/// Clock, randomness, lanes and thread pools. Thread-safe. Must outlive everything opened from it.
class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  virtual Time now() = 0;
  virtual Instant instant() = 0;
  virtual std::uint64_t random() = 0;

  virtual std::unique_ptr<Lane> open_lane(std::string name) = 0;
  virtual std::unique_ptr<ThreadPool> open_thread_pool(std::string name, ThreadPool::Options options) = 0;

  /// Blocks the caller (a job or another thread, never a lane task) until the gate is open. False if the
  /// timeout passed first.
  virtual bool wait(Gate& gate, std::optional<Duration> timeout = std::nullopt) = 0;

  /// A named fault point for tests: true means "fail here". Always false in production. In the simulation it
  /// may crash the process instead, which leaves this call by an exception.
  virtual bool fault(std::string_view point) = 0;
};

/// The production runtime: a thread per lane, a pool per `ThreadPool`, the system's clocks, a generator
/// seeded from the system's random source (not for secrets). Threads have the names of their lanes and pools.
/// Thread-safe.
class ThreadRuntime final : public Runtime {
 public:
  ThreadRuntime();
  ~ThreadRuntime() override;

  Time now() override;
  Instant instant() override;
  std::uint64_t random() override;
  std::unique_ptr<Lane> open_lane(std::string name) override;
  std::unique_ptr<ThreadPool> open_thread_pool(std::string name, ThreadPool::Options options) override;
  bool wait(Gate& gate, std::optional<Duration> timeout = std::nullopt) override;
  bool fault(std::string_view) override { return false; }

 private:
  std::mutex random_mutex_;
  Random random_;
};

}  // namespace pawl
