// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Helpers for system calls: errors from errno, and interruptible waits.

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "support/descriptor.hpp"

namespace pawl::workers {

using systems::Descriptor;
using Deadline = std::chrono::steady_clock::time_point;

/// `process_failed`: "cannot <doing> <what>: <the kernel's words>".
Error process_error(std::string_view doing, std::string_view what, int number = errno);

/// At most `most` bytes of a file below a directory; empty if there is no such file.
Result<std::optional<std::string>> read_below(int directory, const char* name, std::size_t most);

enum class WaitResult : std::uint8_t { ready, timed_out, stopped };

/// Waits for a readable descriptor, a deadline, or a stop. For one thread.
class Waiter {
 public:
  static Result<std::unique_ptr<Waiter>> make(std::stop_token stop);

  WaitResult wait_until_readable(int file, Deadline deadline) const;
  /// Waits a short time, for conditions that have to be polled.
  WaitResult wait_briefly(Deadline deadline) const;

 private:
  Waiter(Descriptor event, std::stop_token stop);

  Descriptor event_;
  std::stop_callback<std::function<void()>> wake_;
};

/// `cancelled`, for a wait that a stop interrupted.
Error stopped_waiting(std::string_view what);

/// A pidfd of exactly this process; empty if it has ended.
Result<Descriptor> open_process(pid_t pid, std::uint64_t start);

}  // namespace pawl::workers
