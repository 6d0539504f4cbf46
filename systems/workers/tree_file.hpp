// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file with the workers, applied when the server starts and whenever it has changed and rests.

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

  /// Applies what is good in the file, if it is another than the one that was applied and was the same at the
  /// last look: one that is being written may be a whole file with fewer workers. A file that cannot be read
  /// is a mistake like any other: the workers stay as they are. What fails is tried again at the next look.
  void look(Supervisor& supervisor);

  const std::string& path() const { return path_; }
  std::vector<ConfigProblem> problems() const;

 private:
  /// False where it has to be tried again.
  bool take(Supervisor& supervisor, const std::string& text);
  void report(std::vector<ConfigProblem> problems);

  std::string path_;
  Runtime& runtime_;
  Logger log_;
  mutable std::mutex mutex_;
  std::string seen_{};   ///< when and how large it was at the last look
  std::string taken_{};  ///< and when it was applied
  std::vector<ConfigProblem> problems_{};
  std::optional<Instant> logged_{};
  std::size_t unlogged_ = 0;
};

}  // namespace pawl::workers
