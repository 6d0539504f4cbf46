// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a supervised process is to be, and what is seen of it. Everything here is a value.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::workers {

struct ProcessSpec {
  /// The program and its arguments; no shell reads them. The program is an absolute path, or a name that is
  /// looked for in the PATH that the process gets.
  std::vector<std::string> command{};
  std::map<std::string, std::string> environment{};
  /// False: of the server's own environment only PATH, HOME, LANG and TZ. True: all of it.
  bool inherit_environment = false;
  std::string directory = "/";                    ///< an absolute path; the process begins there
  std::size_t log_bytes = std::size_t{1} << 20U;  ///< the most that is kept of its output
  std::size_t line_bytes = 8192;                  ///< a longer line of output is cut
  std::optional<std::uint64_t> open_files{};      ///< RLIMIT_NOFILE
  std::optional<std::uint64_t> address_space{};   ///< RLIMIT_AS, in bytes
};

enum class ProcessState : std::uint8_t {
  absent,    ///< never started, or forgotten
  starting,  ///< its shim is there, and has not written down what it runs
  running,
  exited,           ///< by itself or by a signal; nothing of it is left
  failed_to_start,  ///< could not be executed
  lost,             ///< its shim was killed, or the machine: how it ended is not known
};

std::string_view name(ProcessState state);

struct ProcessExit {
  std::optional<int> code{};  ///< one of the two
  std::optional<int> signal{};
  Time at{};
};

struct ProcessStatus {
  ProcessState state = ProcessState::absent;
  int pid = 0;  ///< of the command, which is also its group; 0 where there is none
  std::uint64_t generation = 0;
  Time started_at{};
  std::optional<ProcessExit> exit{};
  std::string error{};             ///< why it could not be executed
  double cpu_seconds = 0;          ///< of it and everything that it started
  std::uint64_t memory_bytes = 0;  ///< resident, of all its processes; pages that they share count each time
  std::size_t processes = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t log_lost_bytes = 0;  ///< output that could not be written; known at the end
};

struct LogLine {
  Time at{};
  bool error = false;  ///< from the standard error
  bool cut = false;    ///< the line was longer
  std::string text{};  ///< as the process wrote it, which need not be UTF-8
  bool operator==(const LogLine&) const = default;
};

/// Errors: `invalid_argument`, with the field `field`, for an empty command, a program that is not there, a
/// directory that is none, a name or value that a process cannot get, limits that contradict each other.
Result<void> validate(const ProcessSpec& spec);

/// The specification as the shim reads it (protocol.hpp). Errors: as `validate`.
Result<std::string> encode_for_shim(const ProcessSpec& spec);

}  // namespace pawl::workers
