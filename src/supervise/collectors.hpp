// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The shared pool that collects observations. A few threads serve one queue, so that ten thousand workers
/// need no thread each, and a busy pool needs no wake-up per collection. Workers whose last collection was
/// slow have a queue of their own, which never gets all threads. A collection that hangs is abandoned:
/// another thread replaces its thread, and a late result is dropped.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "pawl/runtime.hpp"
#include "supervise/tool_holder.hpp"

namespace pawl::supervise {

struct Node;

/// The result of one collection.
struct CollectionResult {
  std::shared_ptr<Node> node;
  std::uint64_t ticket = 0;
  Result<Observation> observation;
  Instant began{};
  Instant ended{};
};

/// Ends a pool whose jobs have been asked to stop. If a job still runs after `within`, the pool is abandoned
/// together with its threads, so a job may use only what it owns. `idle` opens when no job runs any more.
void end_pool(Runtime& runtime, std::unique_ptr<ThreadPool> pool, const std::shared_ptr<Gate>& idle,
              Duration within);

/// Thread-safe.
class Collectors {
 public:
  struct Options {
    std::size_t threads = 1;
    std::size_t abandoned_max = 0;
    Duration stop_within{};  ///< when the pool ends; then hung collections are abandoned
  };
  /// `ready` is called from a collecting thread when `take` has results.
  Collectors(Runtime& runtime, Options options, std::function<void()> ready);
  /// Asks all collections to stop and waits for them at most `stop_within`.
  ~Collectors();
  Collectors(const Collectors&) = delete;
  Collectors& operator=(const Collectors&) = delete;

  /// Queues a collection and returns its ticket.
  std::uint64_t add(std::shared_ptr<Node> node, std::shared_ptr<ToolHolder> tools, bool slow);
  /// When the collection started; none while it is queued.
  std::optional<Instant> started_at(std::uint64_t ticket) const;
  /// Sets the stop token of a running collection.
  void ask_to_stop(std::uint64_t ticket);
  /// Removes a queued collection, or replaces the thread of a running one. False if `abandoned_max`
  /// collections are abandoned already; then it keeps its thread.
  bool abandon(std::uint64_t ticket);
  /// Whether the pool can afford another hung collection of this worker: fewer than `limit` of its own are
  /// abandoned, and one more could be.
  bool may_start(const Node& node, std::size_t limit) const;
  std::vector<CollectionResult> take();
  std::size_t abandoned() const;
  void stop();

 private:
  struct Task {
    std::uint64_t ticket = 0;
    std::shared_ptr<Node> node;
    std::shared_ptr<ToolHolder> tools;
    bool slow = false;
  };
  struct Running {
    std::stop_source stop{};
    const Node* node = nullptr;
    Instant began{};
    bool slow = false;
    bool abandoned = false;
  };
  struct Started {
    Task task;
    std::stop_token stop;
    Instant began{};
    Time now{};
  };
  /// Everything that a collecting thread uses; an abandoned thread keeps it alive.
  struct Shared {
    Runtime* runtime = nullptr;  ///< not used once `stopped`
    std::function<void()> ready{};
    std::size_t slow_max = 1;
    std::mutex mutex{};
    std::deque<Task> queue{};
    std::deque<Task> slow_queue{};
    std::size_t slow_running = 0;
    std::unordered_map<std::uint64_t, Running> running{};
    std::unordered_map<const Node*, std::size_t>
        hung{};  ///< abandoned collections that have not returned, per worker
    std::vector<CollectionResult> results{};
    std::size_t threads = 0;  ///< running ones, without those of abandoned collections
    std::size_t abandoned = 0;
    bool stopped = false;
    std::shared_ptr<Gate> idle = std::make_shared<Gate>();

    std::deque<Task>* next_queue();
    std::optional<Started> start_next(const std::stop_token& pool);
    bool end(const Task& task);
    void open_if_idle();
    static void run(const std::shared_ptr<Shared>& shared, const std::stop_token& pool);
    void finish(const Started& started, Result<Observation> observation);
  };

  void start_thread();

  Runtime& runtime_;
  const Options options_;
  const std::shared_ptr<Shared> shared_;
  std::uint64_t last_ticket_ = 0;
  std::unique_ptr<ThreadPool> workers_;
};

/// Destroys retired tools on threads of its own: a destructor may block, and must not delay collections.
/// Thread-safe.
class ToolDestroyer {
 public:
  ToolDestroyer(Runtime& runtime, Duration stop_within);
  ~ToolDestroyer();
  ToolDestroyer(const ToolDestroyer&) = delete;
  ToolDestroyer& operator=(const ToolDestroyer&) = delete;

  void add(std::shared_ptr<void> what);
  void stop();

 private:
  struct Shared {
    std::mutex mutex{};
    std::deque<std::shared_ptr<void>> queue{};
    std::size_t threads = 0;
    bool stopped = false;
    std::shared_ptr<Gate> idle = std::make_shared<Gate>();
    static void run(const std::shared_ptr<Shared>& shared);
  };

  Runtime& runtime_;
  const Duration stop_within_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::unique_ptr<ThreadPool> workers_;
};

}  // namespace pawl::supervise
