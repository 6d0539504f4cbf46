// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Meters (bench/engine_machine.hpp) in an engine: how they are made and driven by every benchmark that has
/// one.
///
///     if (const auto failed = bench::create_meters(engine, 10'000)) give_up(failed->to_string());
///     auto measured = bench::drive_meters(engine, {.outstanding = 256},
///                                         [](pawl::Random& random) { return random.below(10'000); });

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bench/engine_machine.hpp"
#include "bench/load.hpp"
#include "pawl/engine.hpp"
#include "pawl/random.hpp"

namespace bench {

/// Makes the meters number 0 to `count` - 1; what failed first, if anything did.
inline std::optional<pawl::Error> create_meters(pawl::Engine& engine, std::uint64_t count) {
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::size_t> active = std::min<std::uint64_t>(count, 8192);
  std::mutex mutex;
  std::optional<pawl::Error> failed;
  std::function<void()> create = [&] {
    const auto number = next++;
    if (number >= count) {
      --active;
      return;
    }
    engine.submit(pawl::Transaction{}.create<meter>(key_of(number)), [&](const auto& outcome) {
      if (!outcome) {
        const std::lock_guard lock(mutex);
        if (!failed) failed = outcome.error();
        next = count;
      }
      create();
    });
  };
  for (std::size_t i = active; i > 0; --i) create();
  while (active != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return failed;
}

/// Sends readings to meters whose numbers `pick` gives, each outstanding request with dice of its own.
template <class Pick>
Measured drive_meters(pawl::Engine& engine, LoadOptions options, Pick pick) {
  std::vector<pawl::Random> random;
  for (std::size_t i = 0; i < options.outstanding; ++i) random.emplace_back(i + 1);
  return drive(options, [&](std::size_t slot, Answered answered) {
    auto& dice = random[slot];
    const auto number = static_cast<std::uint32_t>(dice.below(90'000));
    engine.submit(
        pawl::Transaction{}.send<meter>(key_of(pick(dice)),
                                        Reading{.watt_hours = number, .cents = number / 30}),
        [answered = std::move(answered)](const auto& outcome) mutable { answered(outcome.has_value()); });
  });
}

/// Memory of this process.
inline double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace bench
