// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Small things around system calls: errors with errno, and waiting that can be ended from outside.

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

/// At most `most` bytes of a file below a directory; nothing where there is no such file.
Result<std::optional<std::string>> read_below(int directory, const char* name, std::size_t most);

enum class Woken : std::uint8_t { ready, late, stopped };

/// Waits until something can be read, a time has come, or a stop is requested. For one thread.
class Waiter {
 public:
  static Result<std::unique_ptr<Waiter>> make(std::stop_token stop);

  Woken until_readable(int file, Deadline deadline) const;
  /// For what cannot be waited for itself.
  Woken a_moment(Deadline deadline) const;

 private:
  Waiter(Descriptor event, std::stop_token stop);

  Descriptor event_;
  std::stop_callback<std::function<void()>> wake_;
};

/// `cancelled`, for a wait that was ended by a stop.
Error stopped_waiting(std::string_view what);

/// A handle on exactly this process, or an empty one where it has ended.
Result<Descriptor> open_process(pid_t pid, std::uint64_t start);

}  // namespace pawl::workers
