// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The status file that a shim writes, with one fact per line:
///
///     pawl-process 1
///     id plant%2Fpump
///     generation 7
///     shim 4711 123456
///     …
///
/// Plain values; the views of a record that was read point into the text.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pawl::workers {

/// A pid and its start time in ticks since boot, because pids are reused.
struct ProcessKey {
  int pid = 0;
  std::uint64_t start = 0;
  bool operator==(const ProcessKey&) const = default;
};

enum class End : char { none, exited, killed, not_started };

struct Record {
  std::string_view id{};  ///< escaped, so that it has neither blanks nor line ends
  std::uint64_t generation = 0;
  ProcessKey shim{};
  ProcessKey command{};
  std::string_view mark{};      ///< the value of the variable that its processes inherit
  std::int64_t started_at = 0;  ///< microseconds since 1970
  End end = End::none;          ///< none while it runs
  int value = 0;                ///< the exit code, the signal, or the errno of what did not start
  std::string_view step{};      ///< what could not be done: "exec", "chdir", "limit"
  std::int64_t ended_at = 0;
  std::uint64_t cpu_us = 0;    ///< used by the command and what it started, when it ended
  std::uint64_t log_lost = 0;  ///< bytes of output that could not be written
};

inline constexpr std::size_t kLongestRecord = 8192;

/// Returns the number of bytes; 0 if the record does not fit.
std::size_t write_record(const Record& record, std::span<char> into);

/// False if the text is not a complete record.
bool read_record(std::string_view text, Record& record);

}  // namespace pawl::workers
