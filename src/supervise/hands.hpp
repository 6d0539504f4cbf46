// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a worker's collections and actions work with: the part of an instance that other threads touch.

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "pawl/error.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::supervise {

/// One per incarnation. Its tools are made when they are first needed, on a thread that may block.
/// Thread-safe.
class Hands {
 public:
  Hands(std::shared_ptr<const WorkerType> type, WorkerIdentity identity)
      : type_(std::move(type)), identity_(std::move(identity)) {}

  void desire(std::shared_ptr<const void> desired) {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(desired);
  }

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
  const WorkerIdentity identity_;
  std::mutex making_;  // held while the tools are made
  std::mutex mutex_;
  std::shared_ptr<void> tools_;
  std::shared_ptr<const void> desired_;
  std::set<std::string, std::less<>> running_;
};

}  // namespace pawl::supervise
