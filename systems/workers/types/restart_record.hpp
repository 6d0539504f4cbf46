// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a process worker remembers over restarts of the server, in addition to what the manager knows.
///
///     RestartRecordFile file("/var/lib/pawl/workers/notes", "plant/pump");
///     file.record_start(7, 0, "4711");     // before order 7 is carried out: 7 is the generation to start
///     file.record_exit(7, brief);          // its exit was handled
///
/// One small file per process, replaced as a whole and durable. A crash between two calls is harmless: an
/// order that is repeated has the same generation.

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::workers {

struct RestartRecord {
  std::uint64_t order = 0;      ///< the last order that was carried out
  std::uint64_t started = 0;    ///< the generation that it started
  std::string specification{};  ///< the specification that it was started with
  std::uint64_t ended = 0;      ///< the last generation whose exit was handled
  std::uint64_t restarts = 0;
  std::uint32_t brief = 0;  ///< consecutive runs that ended early
};

/// Reads the file at each call; nothing is cached. Externally synchronised.
class RestartRecordFile {
 public:
  RestartRecordFile(std::string directory, std::string_view id);

  /// Error: `process_failed`.
  Result<RestartRecord> read() const;
  /// Returns the generation that the order has to start: its own number, or the one after `before` if that is
  /// higher. Order numbers are lower after an older store was restored, or with another store.
  Result<std::uint64_t> record_start(std::uint64_t order, std::uint64_t before,
                                     std::string specification) const;
  /// Counts the exit, once for each generation.
  Result<void> record_exit(std::uint64_t generation, bool brief) const;
  /// Records an intended stop: nothing is counted, and the brief runs are reset.
  Result<void> record_stop(std::uint64_t generation) const;

  /// Removes the file. No-op if absent.
  void remove() const;

 private:
  Result<void> write(const RestartRecord& record) const;

  std::string directory_;
  std::string path_;
};

}  // namespace pawl::workers
