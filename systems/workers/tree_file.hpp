// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file with the workers. It is applied when the server starts and whenever it has changed.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pawl/log.hpp"
#include "pawl/runtime.hpp"
#include "pawl/supervisor.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

/// Thread-safe.
class TreeFile {
 public:
  TreeFile(std::string path, Runtime& runtime, Logger log)
      : path_(std::move(path)), runtime_(runtime), log_(std::move(log)) {}

  /// Applies the valid part of the file if it differs from what was applied and did not change since the
  /// previous poll: a file that is being written may look like a whole file with fewer workers. If the file
  /// cannot be read, that is reported as a mistake and the workers stay as they are. Failures are retried at
  /// the next poll.
  void poll(Supervisor& supervisor);

  const std::string& path() const { return path_; }
  std::vector<ConfigProblem> problems() const;

 private:
  /// False if it has to be retried.
  bool apply(Supervisor& supervisor, const std::string& text);
  void report(std::vector<ConfigProblem> problems);

  std::string path_;
  Runtime& runtime_;
  Logger log_;
  mutable std::mutex mutex_;
  std::string seen_{};     ///< its time and size at the previous poll
  std::string applied_{};  ///< and when it was applied last
  std::vector<ConfigProblem> problems_{};
  std::optional<Instant> logged_{};
  std::size_t unlogged_ = 0;
};

}  // namespace pawl::workers
