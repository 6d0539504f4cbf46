// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a worker's collections and actions work with: the part of an instance that other threads touch.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/runtime.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::supervise {

/// Who a worker is, and what all its incarnations have in common.
struct Person : WorkerIdentity {
  std::atomic<std::uint64_t> running{0};  ///< which of its actions run, by their places
  /// Who had this path before and was removed while an action of it hung. Nothing, or complete before this
  /// one is shared.
  std::shared_ptr<const Person> predecessor{};
};

/// One per incarnation. Its tools are made when they are first needed, on a thread that may block.
/// Thread-safe.
class Hands {
 public:
  Hands(Runtime& runtime, std::shared_ptr<const WorkerType> type, std::shared_ptr<Person> identity)
      : runtime_(runtime), type_(std::move(type)), identity_(std::move(identity)) {}

  void desire(std::shared_ptr<const void> desired) {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(desired);
  }

  const WorkerIdentity& identity() const { return *identity_; }

  Result<Seen> collect(Time now, std::stop_token stop);
  /// Refuses while an earlier run of the same action has not returned, or any action of the worker that had
  /// this path before: no action runs beside itself, also where a worker is removed and added again.
  Result<void> act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                   std::stop_token stop);

 private:
  struct Grip {
    std::shared_ptr<void> tools;
    std::shared_ptr<const void> desired;
  };
  Result<Grip> grip(const std::stop_token& stop);
  Result<std::shared_ptr<void>> make_tools() const;
  void made(std::shared_ptr<void> tools);

  Runtime& runtime_;
  const std::shared_ptr<const WorkerType> type_;
  const std::shared_ptr<Person> identity_;
  std::mutex mutex_;
  bool making_ = false;                         // somebody makes the tools
  std::vector<std::shared_ptr<Gate>> waiting_;  // for them
  std::shared_ptr<void> tools_;
  std::shared_ptr<const void> desired_;
};

}  // namespace pawl::supervise
