// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a simulation did, line by line: the last lines as text, all lines as a hash.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pawl/time.hpp"

namespace pawl::sim::detail {

class Trace {
 public:
  explicit Trace(std::size_t keep) : keep_(keep) {}

  template <class... Args>
  void line(std::uint64_t step, Duration time, fmt::format_string<Args...> text, Args&&... args) {
    begin_line(step, time);
    fmt::format_to(fmt::appender(buffer_), text, std::forward<Args>(args)...);
    end_line();
  }

  /// At most `last` of the lines that are kept, after a line that says how many are missing.
  std::string text(std::size_t last) const;
  std::size_t kept() const noexcept { return lines_.size(); }
  std::uint64_t hash() const noexcept { return hash_; }

 private:
  void begin_line(std::uint64_t step, Duration time);
  void end_line();

  std::size_t keep_;
  std::uint64_t total_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;  // FNV-1a
  std::vector<std::string> lines_;           // a ring once it is full; the oldest is at total_ % keep_
  fmt::memory_buffer buffer_;
};

}  // namespace pawl::sim::detail
