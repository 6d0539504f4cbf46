// SPDX-License-Identifier: Apache-2.0
#include "kernel/sim_trace.hpp"

#include <algorithm>

namespace pawl::sim::detail {

void Trace::begin_line(std::uint64_t step, Duration time) {
  buffer_.clear();
  const auto micros = time.count();
  fmt::format_to(fmt::appender(buffer_), "{} {}.{:06} ", step, micros / 1'000'000, micros % 1'000'000);
}

void Trace::end_line() {
  buffer_.push_back('\n');
  for (const char c : buffer_) {
    hash_ ^= static_cast<unsigned char>(c);
    hash_ *= 0x100000001b3;
  }
  const auto index = total_++;
  if (keep_ == 0) return;
  if (lines_.size() < keep_) {
    lines_.emplace_back(buffer_.data(), buffer_.size());
  } else {
    lines_[index % keep_].assign(buffer_.data(), buffer_.size());
  }
}

std::string Trace::text(std::size_t last) const {
  const auto shown = std::min(last, lines_.size());
  std::string text;
  if (shown < total_) text = fmt::format("({} earlier lines)\n", total_ - shown);
  for (auto i = total_ - shown; i < total_; ++i) text += lines_[i % lines_.size()];
  return text;
}

}  // namespace pawl::sim::detail
