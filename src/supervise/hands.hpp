// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a worker's collections and actions work with: the part of an instance that other threads touch.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "pawl/error.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::supervise {

/// One per incarnation. Its tools are made when they are first needed, on a thread that may block.
/// Thread-safe.
class Hands {
 public:
  /// `running` is shared by all incarnations of a worker: which of its actions run, by their places.
  Hands(std::shared_ptr<const WorkerType> type, std::shared_ptr<const WorkerIdentity> identity,
        std::shared_ptr<std::atomic<std::uint64_t>> running)
      : type_(std::move(type)), identity_(std::move(identity)), running_(std::move(running)) {}

  void desire(std::shared_ptr<const void> desired) {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(desired);
  }

  const WorkerIdentity& identity() const { return *identity_; }

  Result<Seen> collect(Time now, std::stop_token stop);
  /// Refuses while an earlier run of the same action has not returned: no action runs beside itself.
  Result<void> act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                   std::stop_token stop);

 private:
  struct Grip {
    std::shared_ptr<void> tools;
    std::shared_ptr<const void> desired;
  };
  Result<Grip> grip();

  const std::shared_ptr<const WorkerType> type_;
  const std::shared_ptr<const WorkerIdentity> identity_;
  const std::shared_ptr<std::atomic<std::uint64_t>> running_;
  std::mutex making_;  // held while the tools are made
  std::mutex mutex_;
  std::shared_ptr<void> tools_;
  std::shared_ptr<const void> desired_;
};

}  // namespace pawl::supervise
