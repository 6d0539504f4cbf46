// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Starts the command of a shim and ends all of its processes. Not thread-safe.

#include <cstdint>
#include <string_view>

#include "workers/process/record.hpp"
#include "workers/process/shim/spec.hpp"

namespace pawl::workers::shim {

/// An errno and the failed step; `number` is 0 on success.
struct StartError {
  int number = 0;
  std::string_view step{};
};

/// A forked process that waits for a byte before it executes the command.
struct Command {
  ProcessKey key{};
  int out = -1;  ///< standard output; non-blocking
  int err = -1;
  int go = -1;     ///< a byte makes it execute, the end of the pipe makes it exit
  int error = -1;  ///< receives the error if it cannot execute
};

/// Forks into a process group of its own. The kernel kills the process when the shim dies.
StartError fork_command(const Spec& spec, Command& command);

/// Lets the process execute the command; returns after the exec or its failure.
StartError run_command(Command& command);

struct Ending {
  End end = End::none;
  int value = 0;
  std::uint64_t cpu_us = 0;
};

/// How the command ended; `End::none` while it runs. It stays unreaped, so that its pid is not reused while
/// the shim lives: the manager may be about to signal its group. Other exited children are reaped.
Ending check_children(const Command& command);

/// Kills the command's group and all of its descendants; returns when all have ended.
void kill_rest(const Command& command);

}  // namespace pawl::workers::shim
