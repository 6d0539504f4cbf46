// SPDX-License-Identifier: Apache-2.0
#include "images/rate.hpp"

#include <fmt/format.h>

#include <chrono>

namespace pawl::images {
namespace {

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

std::string pace_text(const Pace& pace) {
  auto text = pace.total == 0
                  ? fmt::format("{:.1f} MB", megabytes(pace.done))
                  : fmt::format("{:.1f} of {:.1f} MB", megabytes(pace.done), megabytes(pace.total));
  const auto seconds = std::chrono::duration<double>(pace.taken).count();
  if (seconds < 0.5 || pace.done <= pace.begin) return text;
  const auto rate = static_cast<double>(pace.done - pace.begin) / seconds;
  text += fmt::format(", {:.1f} MB/s", rate / 1e6);
  if (pace.total == 0) return text;
  const auto left = pace.total > pace.done ? static_cast<double>(pace.total - pace.done) / rate : 0.0;
  return text + fmt::format(", {:.0f} s left", left);
}

double fraction_of(const Pace& pace) {
  return pace.total == 0 ? 0.0 : static_cast<double>(pace.done) / static_cast<double>(pace.total);
}

}  // namespace pawl::images
