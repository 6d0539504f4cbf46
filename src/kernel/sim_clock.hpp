// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clock of one simulated process: virtual time seen through an oscillator that runs too fast or too slow.

#include <cstdint>

#include "pawl/time.hpp"

namespace pawl::sim::detail {

/// Durations are since the simulation began ("virtual") and since the process was spawned ("local"). Whole
/// numbers only, so that every machine computes the same; split at a million, so that nothing overflows.
class Clock {
 public:
  explicit Clock(Duration spawned_at) : virtual_base_(spawned_at) {}

  Duration local(Duration virtual_time) const {
    const auto passed = (virtual_time - virtual_base_).count();
    return local_base_ + Duration{passed / kMillion * rate_ + passed % kMillion * rate_ / kMillion};
  }

  /// The first virtual time at which this clock shows `local` or more.
  Duration reaches(Duration local) const {
    const auto left = (local - local_base_).count();
    if (left <= 0) return virtual_base_;
    return virtual_base_ + Duration{left / rate_ * kMillion + (left % rate_ * kMillion + rate_ - 1) / rate_};
  }

  void set_drift(Duration virtual_time, std::int64_t ppm) {
    local_base_ = local(virtual_time);
    virtual_base_ = virtual_time;
    rate_ = kMillion + ppm;
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;

  Duration virtual_base_;
  Duration local_base_{0};
  std::int64_t rate_ = kMillion;  // local microseconds in a virtual second
};

}  // namespace pawl::sim::detail
