// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker process and the two pipes to it.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::crash {

/// Used by one thread at a time. Destroying it kills the process.
class Child {
 public:
  /// Starts this program again with these arguments.
  static Result<Child> start(const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// Queues a line for its standard input.
  void send(std::string_view line);
  /// Ends its standard input once everything queued is written.
  void end_input() { ending_ = true; }

  struct Heard {
    std::vector<std::string> lines;  // complete ones only: what breaks off was not said
    bool ended = false;
  };
  /// Writes what is queued and reads what is there, waiting for that until `until`.
  Result<Heard> listen(Instant until);

  /// SIGSTOP, and waits until it has stopped; SIGCONT.
  Result<void> stop();
  void go_on();

  /// SIGKILL. Returns what it had said by then; the process is gone afterwards. Error: it had ended before,
  /// unless it may have done so with status 1, as after an error that it has reported.
  Result<Heard> kill(bool may_have_failed = false);
  /// Waits for its end. Error: it did not end by itself with this status.
  Result<void> wait(int expected = 0);

  /// The monotonic clock that `listen` goes by.
  static Instant now();

 private:
  Child(pid_t process, int input, int output) : process_(process), input_(input), output_(output) {}
  Result<void> write_queued();
  Result<void> read_available(Heard& heard);

  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ending_ = false;
  std::string queued_;
  std::string partial_;
};

}  // namespace pawl::crash
