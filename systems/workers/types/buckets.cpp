// SPDX-License-Identifier: Apache-2.0
#include "workers/types/buckets.hpp"

#include <array>
#include <chrono>
#include <utility>

namespace pawl::workers {
namespace {

constexpr double kSlack = 2.0;
constexpr std::array<double, 5> kLatencies{1, 5, 20, 100, 500};  // milliseconds
constexpr std::array<double, 4> kRates{1, 10, 100, 1000};        // per second

/// For an enum whose first value means "no bucket".
template <class Step>
Step settled(Step present, double value, std::span<const double> bounds) {
  const auto step = present == Step{} ? first_step(value, bounds)
                                      : settle(std::to_underlying(present) - std::size_t{1}, value, bounds);
  return static_cast<Step>(step + 1);
}

}  // namespace

std::size_t first_step(double value, std::span<const double> bounds) {
  std::size_t step = 0;
  while (step < bounds.size() && value > bounds[step]) ++step;
  return step;
}

std::size_t settle(std::size_t present, double value, std::span<const double> bounds) {
  const bool far_below = present > 0 && value < bounds[present - 1] / kSlack;
  const bool far_above = present < bounds.size() && value > bounds[present] * kSlack;
  return far_below || far_above ? first_step(value, bounds) : present;
}

Latency settle_latency(Latency present, Duration measured) {
  return settled(present, std::chrono::duration<double, std::milli>(measured).count(), kLatencies);
}

Rate settle_rate(Rate present, double per_second) { return settled(present, per_second, kRates); }

}  // namespace pawl::workers
