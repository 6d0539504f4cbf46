// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "pawl/system.hpp"

namespace pawl::workers {

/// What becomes of workers when the server stops.
enum class OnStop : std::uint8_t { leave, drain };

struct WorkersOptions {
  std::string file{};  ///< which workers there should be; empty: what was applied last
  Duration tick = std::chrono::milliseconds(100);
  OnStop on_stop = OnStop::leave;
  Duration drain_base = std::chrono::seconds(5);
  std::uint32_t actions = 64;  ///< at the same time; one that stops a process takes until it has ended
  std::uint32_t collectors = 8;
  std::string shim{};
};

/// The keys below `workers` in the configuration; they write into the options, which must live as long.
std::vector<Setting> worker_settings(WorkersOptions& options);

/// The program that holds a process: the one that is set, or the one that belongs to this command; empty
/// if there is none.
std::string find_shim(const std::string& set);

}  // namespace pawl::workers
