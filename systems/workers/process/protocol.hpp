// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The protocol between the process manager and a shim. The shim is started as
///
///     pawl-shim <escaped id> <generation>
///
/// with three open descriptors; possible secrets (the environment) are in the first, which is a memory
/// file, so that neither the process list nor the disk shows them.
///
/// The shim's sources use neither exceptions nor library parts that need them: there is one shim per process,
/// so it has to be small.

namespace pawl::workers::shim {

inline constexpr int kSpecFd = 3;
inline constexpr int kDirectoryFd = 4;  ///< of the worker; stays valid after the directory was removed
inline constexpr int kReportFd = 5;     ///< a pipe; closed after the last report
inline constexpr int kFirstOtherFd = 6;

/// Files below the directory of a worker.
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kStatusFile = "status";
inline constexpr const char* kStatusNewFile = "status.new";
inline constexpr const char* kLogFile = "log";
inline constexpr const char* kOldLogFile = "log.1";
inline constexpr const char* kNameFile = "name";

/// The first letter of what the shim reports; after `broken` follow the errno and what it was doing.
enum class Report : char {
  started = 's',
  failed = 'f',  ///< the command could not be executed; the status says why
  held = 'h',    ///< another shim holds the lock
  used = 'u',    ///< this generation, or a later one, was run before
  broken = 'b',
};

/// The specification is a sequence of NUL-terminated texts; the first letter is the kind.
enum class Tag : char {
  program = 'p',
  directory = 'd',
  argument = 'a',
  setting = 'e',    ///< NAME=value of the environment
  log_bytes = 'l',  ///< of both logs together
  line_bytes = 'w',
  open_files = 'n',  ///< RLIMIT_NOFILE
  memory = 'm',      ///< RLIMIT_AS
};

/// Inherited by every process of a command, so that processes that outlive a killed shim can be found.
inline constexpr const char* kMarkVariable = "PAWL_PROCESS_MARK";

/// A line of the log: "2026-11-15T21:40:00.000000Z out text"; the tag ends in '+' where the line was cut.
inline constexpr unsigned kTimeChars = 27;
inline constexpr unsigned kLongestFrame = kTimeChars + 7;  ///< all of a line but its text

}  // namespace pawl::workers::shim
