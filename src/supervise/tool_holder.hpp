// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The tools of a worker: the only part of it that collecting threads and action threads touch.

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

/// The identity of a worker, and what its incarnations share.
struct WorkerShared : WorkerIdentity {
  std::atomic<std::uint64_t> running{0};  ///< a bit per action of the type: set while it runs
  /// The removed worker of the same path whose action still hung. Set before this object is shared, or never.
  std::shared_ptr<const WorkerShared> predecessor{};
};

/// One per incarnation. Creates the tools on first use, on a thread that may block.
/// Thread-safe.
class ToolHolder {
 public:
  ToolHolder(Runtime& runtime, std::shared_ptr<const WorkerType> type, std::shared_ptr<WorkerShared> identity)
      : runtime_(runtime), type_(std::move(type)), identity_(std::move(identity)) {}

  void set_desired(std::shared_ptr<const void> desired) {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(desired);
  }

  const WorkerIdentity& identity() const { return *identity_; }

  Result<Observation> collect(Time now, std::stop_token stop);
  /// Runs an action. Error: `overloaded` while an earlier run of the same action, or any action of the
  /// removed worker of the same path, has not returned: an action never runs twice at the same time.
  Result<void> act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                   std::stop_token stop);

 private:
  struct BoundTools {
    std::shared_ptr<void> tools;
    std::shared_ptr<const void> desired;
  };
  /// The tools with the present configuration. Error: `cancelled` if stopped while another thread creates
  /// them.
  Result<BoundTools> bind(const std::stop_token& stop);
  Result<std::shared_ptr<void>> make_tools() const;
  void tools_made(std::shared_ptr<void> tools);

  Runtime& runtime_;
  const std::shared_ptr<const WorkerType> type_;
  const std::shared_ptr<WorkerShared> identity_;
  std::mutex mutex_;
  bool making_ = false;                         // a thread creates the tools
  std::vector<std::shared_ptr<Gate>> waiting_;  // for them
  std::shared_ptr<void> tools_;
  std::shared_ptr<const void> desired_;
};

}  // namespace pawl::supervise
