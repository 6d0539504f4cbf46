// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The shared pool that collects observations. A few threads take from one line, so that ten thousand workers
/// need no thread each and a collection costs no wake-up while others wait. A collection that hangs is given
/// up after a while: another thread takes its place, and what it returns one day is dropped.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
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
};

/// Thread-safe.
class Collectors {
 public:
  /// `ready` is called from a collecting thread when there is something to take.
  Collectors(Runtime& runtime, std::size_t threads, std::size_t abandoned_max, std::function<void()> ready);
  /// Asks all to stop and waits for them.
  ~Collectors();

  /// Stands in line; returns the ticket.
  std::uint64_t add(std::shared_ptr<Node> node, std::shared_ptr<Hands> hands);
  /// Runs `work` on one of the threads: for what may block and has no outcome.
  void dispose(std::move_only_function<void()> work);
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
    std::move_only_function<void()> work{};
  };
  struct Running {
    std::stop_source stop{};
    const Node* node = nullptr;
    bool abandoned = false;
  };

  void add(Task task);
  void hire();
  void run(const std::stop_token& pool);
  void finish(const Task& task, Result<Seen> seen);

  Runtime& runtime_;
  const std::size_t threads_;
  const std::size_t abandoned_max_;
  const std::function<void()> ready_;
  mutable std::mutex mutex_;
  std::deque<Task> line_;
  std::unordered_map<std::uint64_t, Running> running_;
  std::unordered_map<const Node*, std::size_t> hung_;  // how many of each were given up and have not returned
  std::vector<Collected> done_;
  std::uint64_t last_ticket_ = 0;
  std::size_t hired_ = 0;
  std::size_t abandoned_ = 0;
  bool stopped_ = false;
  std::unique_ptr<Workers> workers_;
};

}  // namespace pawl::supervise
