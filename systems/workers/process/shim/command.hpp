// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Starting the command of a shim, and ending everything that it started. Not thread-safe.

#include <cstdint>
#include <string_view>

#include "workers/process/record.hpp"
#include "workers/process/shim/spec.hpp"

namespace pawl::workers::shim {

/// What went wrong; `number` is 0 where nothing did.
struct Trouble {
  int number = 0;
  std::string_view step{};
};

/// A forked process that waits for the word before it becomes the command.
struct Command {
  ProcessKey key{};
  int out = -1;  ///< what it writes; does not block
  int err = -1;
  int go = -1;       ///< a byte lets it run, the end of the pipe ends it
  int trouble = -1;  ///< why it could not become the command
};

/// In a group of its own, and killed by the kernel when the shim dies.
Trouble fork_command(const Spec& spec, Command& command);

/// Gives the word, and tells whether the command is executed now. Only then it has the program's code.
Trouble run_command(Command& command);

struct Ending {
  End end = End::none;
  int value = 0;
  std::uint64_t cpu_us = 0;
};

/// How the command ended; `End::none` while it runs. It is left unreaped, so that nobody else gets its number
/// as long as the shim lives: the keeper may be about to signal its group. Others that ended are reaped.
Ending look_at_children(const Command& command);

/// Kills what is left of the command's group, and every process that it started and that has come to the
/// shim since; returns when all have ended.
void kill_rest(const Command& command);

}  // namespace pawl::workers::shim
