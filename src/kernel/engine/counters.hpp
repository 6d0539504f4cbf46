// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A histogram that one thread fills and any thread reads.
///
///     Buckets<3> seconds({0.001, 0.01, 0.1});
///     seconds.count(0.004);
///     seconds.read();          // bounds, counts 0 1 0 0, sum 0.004

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pawl/instance.hpp"

namespace pawl {

/// One thread calls `count`, any thread calls `read`, whose numbers may be from slightly different moments.
template <std::size_t N>
class Buckets {
 public:
  explicit constexpr Buckets(const std::array<double, N>& bounds) : bounds_(bounds) {}

  void count(double value) {
    const auto place = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    counts_[static_cast<std::size_t>(place)].fetch_add(1, std::memory_order_relaxed);
    sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  Histogram read() const {
    Histogram made{.bounds = {bounds_.begin(), bounds_.end()}, .counts = {}, .sum = sum_};
    for (const auto& count : counts_) made.counts.push_back(count.load(std::memory_order_relaxed));
    return made;
  }

 private:
  std::array<double, N> bounds_;
  std::array<std::atomic<std::uint64_t>, N + 1> counts_{};
  std::atomic<double> sum_ = 0;
};

}  // namespace pawl
