// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The specification and the status of a supervised process. Everything here is a value.

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
  /// The program and its arguments, without a shell. The program is an absolute path, or a name that is
  /// looked up in the PATH of the process.
  std::vector<std::string> command{};
  std::map<std::string, std::string> environment{};
  /// If false, only PATH, HOME, LANG and TZ of the server's environment are inherited.
  bool inherit_environment = false;
  std::string directory = "/";                    ///< working directory, absolute
  std::size_t log_bytes = std::size_t{1} << 20U;  ///< maximum size of the output log
  std::size_t line_bytes = 8192;                  ///< a longer line of output is cut
  std::optional<std::uint64_t> open_files{};      ///< RLIMIT_NOFILE
  std::optional<std::uint64_t> address_space{};   ///< RLIMIT_AS, in bytes
};

enum class ProcessState : std::uint8_t {
  absent,    ///< never started, or forgotten
  starting,  ///< its shim runs and has not recorded the command
  running,
  exited,           ///< by itself or by a signal; no process is left
  failed_to_start,  ///< could not be executed
  lost,             ///< its shim or the machine was killed: the exit status is unknown
};

std::string_view name(ProcessState state);

struct ProcessExit {
  std::optional<int> code{};  ///< one of the two
  std::optional<int> signal{};
  Time at{};
};

struct ProcessStatus {
  ProcessState state = ProcessState::absent;
  int pid = 0;  ///< of the command, also its process group; 0 if there is none
  std::uint64_t generation = 0;
  Time started_at{};
  std::optional<ProcessExit> exit{};
  std::string error{};             ///< why it could not be executed
  double cpu_seconds = 0;          ///< of all its processes
  std::uint64_t memory_bytes = 0;  ///< resident, of all its processes; shared pages count for each
  std::size_t processes = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t log_lost_bytes = 0;  ///< output that could not be written; set after the exit
};

struct LogLine {
  Time at{};
  bool error = false;  ///< from the standard error
  bool cut = false;    ///< the line was longer
  std::string text{};  ///< as written, possibly not UTF-8
  bool operator==(const LogLine&) const = default;
};

/// Errors: `invalid_argument`, with the field `field`, for an empty command, a missing program or directory,
/// an invalid name or value in the environment, contradicting limits.
Result<void> validate(const ProcessSpec& spec);

/// Encodes the specification for the shim (protocol.hpp). Errors: as `validate`.
Result<std::string> encode_for_shim(const ProcessSpec& spec);

}  // namespace pawl::workers
