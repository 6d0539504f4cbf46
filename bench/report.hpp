// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a benchmark reports: one JSON object per line, for people and for scripts/bench alike.
///
///     bench::report("dispatch.14", 6.1, "ns", 9.3);
///     // {"name":"dispatch.14","value":6.1,"unit":"ns","baseline":9.3,"ratio":0.656}

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string_view>
#include <vector>

namespace bench {

/// `baseline` is what was measured beside it in the same run and in the same unit.
inline void report(std::string_view name, double value, std::string_view unit, double baseline) {
  fmt::print(R"({{"name":"{}","value":{:.4g},"unit":"{}","baseline":{:.4g},"ratio":{:.3f}}})"
             "\n",
             name, value, unit, baseline, value / baseline);
}

/// The middle one, which a few disturbed repetitions do not move. `values` is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// CPU seconds of this thread so far: other programs on the machine hardly disturb it.
inline double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace bench
