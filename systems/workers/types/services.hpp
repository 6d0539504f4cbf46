// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The environment of worker types. The defaults are real; a simulation replaces them.
///
///     TypeServices services;
///     services.wait = [&](Duration time, std::stop_token stop) { return clock.wait(time, stop); };

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "pawl/error.hpp"
#include "pawl/time.hpp"
#include "pawl/worker.hpp"

namespace pawl::workers {

/// The simulated connection of an example worker; a test may cut it. Thread-safe.
struct ExampleLink {
  std::atomic<bool> connected = false;
};

/// Waits in real time; false if stopped before.
bool wait_really(Duration time, const std::stop_token& stop);

/// At most 4 KiB of a text file; empty if absent. Error: `invalid_argument`.
Result<std::optional<std::string>> read_small_file(const std::string& path);

/// A value. Its functions are called from several threads at once.
struct TypeServices {
  std::function<bool(Duration, std::stop_token)> wait = wait_really;
  std::function<Result<std::optional<std::string>>(const std::string& path)> read_file = read_small_file;
  /// Creates the link of a new instance of a child.
  std::function<std::shared_ptr<ExampleLink>(const WorkerIdentity&)> make_link = [](const WorkerIdentity&) {
    return std::make_shared<ExampleLink>();
  };
};

}  // namespace pawl::workers
