// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The shared pool that collects observations. A few threads take from one line, so that ten thousand workers
/// need no thread each and a collection costs no wake-up while others wait. Those that were slow the last
/// time stand in a line of their own, which never has all the threads. A collection that hangs is given up
/// after a while: another thread takes its place, and what it returns one day is dropped.

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
#include "supervise/hands.hpp"

namespace pawl::supervise {

struct Node;

/// A collection has ended.
struct Collected {
  std::shared_ptr<Node> node;
  std::uint64_t ticket = 0;
  Result<Seen> seen;
  Instant began{};
  Instant ended{};
};

/// Ends a pool whose jobs have been asked to stop. One that still runs after `within` is left alone, with its
/// threads: what they use has to be theirs. `idle` opens when none of its jobs runs any more.
void end_pool(Runtime& runtime, std::unique_ptr<ThreadPool> pool, const std::shared_ptr<Gate>& idle,
              Duration within);

/// Thread-safe.
class Collectors {
 public:
  struct Options {
    std::size_t threads = 1;
    std::size_t abandoned_max = 0;
    Duration stop_within{};  ///< at the end; then a collection that hangs is left alone
  };
  /// `ready` is called from a collecting thread when there is something to take.
  Collectors(Runtime& runtime, Options options, std::function<void()> ready);
  /// Asks all to stop and waits for them, but not for ever.
  ~Collectors();
  Collectors(const Collectors&) = delete;
  Collectors& operator=(const Collectors&) = delete;

  /// Stands in line; returns the ticket.
  std::uint64_t add(std::shared_ptr<Node> node, std::shared_ptr<Hands> hands, bool slow);
  /// When it left the line; nothing while it stands there.
  std::optional<Instant> begun_at(std::uint64_t ticket) const;
  /// Asks a collection that is out of time to stop.
  void ask_to_stop(std::uint64_t ticket);
  /// Does not wait for it any more; where it has not begun, it does not stand in line any more. False where
  /// no more may be given up: then it keeps its thread.
  bool abandon(std::uint64_t ticket);
  /// Whether one more collection of a worker may hang: at most `limit` of its own are given up, and one that
  /// could not be given up would take a thread from the others.
  bool may_begin(const Node& node, std::size_t limit) const;
  std::vector<Collected> take();
  std::size_t abandoned() const;
  void stop();

 private:
  struct Task {
    std::uint64_t ticket = 0;
    std::shared_ptr<Node> node;
    std::shared_ptr<Hands> hands;
    bool slow = false;
  };
  struct Running {
    std::stop_source stop{};
    const Node* node = nullptr;
    Instant began{};
    bool slow = false;
    bool abandoned = false;
  };
  struct Begun {
    Task task;
    std::stop_token stop;
    Instant began{};
    Time now{};
  };
  /// Everything that a collecting thread uses: a thread that is left alone shares it.
  struct Shared {
    Runtime* runtime = nullptr;  ///< not once it is stopped
    std::function<void()> ready{};
    std::size_t slow_max = 1;
    std::mutex mutex{};
    std::deque<Task> line{};
    std::deque<Task> slow_line{};
    std::size_t slow_running = 0;
    std::unordered_map<std::uint64_t, Running> running{};
    std::unordered_map<const Node*, std::size_t> hung{};  ///< of each, given up and not returned
    std::vector<Collected> done{};
    std::size_t hired = 0;  ///< threads, without those whose collection was given up
    std::size_t abandoned = 0;
    bool stopped = false;
    std::shared_ptr<Gate> idle = std::make_shared<Gate>();

    std::deque<Task>* next_line();
    std::optional<Begun> begin_next(const std::stop_token& pool);
    bool end(const Task& task);
    void leave();
    static void run(const std::shared_ptr<Shared>& shared, const std::stop_token& pool);
    void finish(const Begun& begun, Result<Seen> seen);
  };

  void hire();

  Runtime& runtime_;
  const Options options_;
  const std::shared_ptr<Shared> shared_;
  std::uint64_t last_ticket_ = 0;
  std::unique_ptr<ThreadPool> workers_;
};

/// Destroys what may take its time, on threads of its own: whoever hangs there holds up no collection.
/// Thread-safe.
class Disposal {
 public:
  Disposal(Runtime& runtime, Duration stop_within);
  ~Disposal();
  Disposal(const Disposal&) = delete;
  Disposal& operator=(const Disposal&) = delete;

  void add(std::shared_ptr<void> what);
  void stop();

 private:
  struct Shared {
    std::mutex mutex{};
    std::deque<std::shared_ptr<void>> line{};
    std::size_t hired = 0;
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
