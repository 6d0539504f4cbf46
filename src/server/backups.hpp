// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Backups that the server makes of its own store, one at a time, into one directory.

#include <memory>
#include <mutex>
#include <string>

#include "pawl/engine.hpp"
#include "pawl/http.hpp"
#include "pawl/runtime.hpp"

namespace pawl::server {

/// Thread-safe. Its destruction waits for a backup that is being written.
class Backups {
 public:
  /// The first backup creates `directory`. With `elsewhere`, every backup is refused with that text.
  Backups(Runtime& runtime, Engine& engine, std::string directory, std::string elsewhere = {});

  std::vector<http::Route> routes();

 private:
  enum class State { none, running, done, failed };

  Result<http::Response> start(const http::Request& request);
  Result<http::Response> status();
  void write(const std::string& path);

  Runtime& runtime_;
  Engine& engine_;
  const std::string directory_;
  const std::string elsewhere_;
  std::mutex mutex_;
  State state_ = State::none;  // with what follows, guarded by the mutex
  std::string file_;
  double progress_ = 0;
  std::string error_;
  std::unique_ptr<ThreadPool> workers_;  // last: its job uses the rest
};

}  // namespace pawl::server
