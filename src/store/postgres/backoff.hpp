// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Waits with exponential backoff and jitter until a total time is over.
///
///     Backoff backoff(options.patience);
///     while (!try_it()) {
///       if (!backoff.again()) return failure;
///     }

#include <chrono>

#include "pawl/time.hpp"

namespace pawl::postgres {

class Backoff {
 public:
  explicit Backoff(Duration patience);
  /// Waits; returns false if the time is over.
  bool again();

 private:
  std::chrono::steady_clock::time_point end_;
  Duration next_ = std::chrono::milliseconds(10);
};

}  // namespace pawl::postgres
