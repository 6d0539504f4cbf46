// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The output of a command, line by line, into a log of limited size: `log`, and before it `log.1`, each of
/// at most half the limit. What cannot be written is counted and dropped, so that a full disk does not hold
/// the command up. Not thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl::workers::shim {

class Log {
 public:
  /// Appends to what is in the directory. `log_bytes` is of both files together.
  Log(int directory, std::size_t log_bytes) : directory_(directory), file_limit_(log_bytes / 2) {}

  /// One line without its end; `cut` where there was more of it. It is written at the latest by `flush`.
  void line(std::string_view tag, std::string_view text, bool cut);
  void flush();

  /// Lines from here on carry this time.
  void set_time(std::int64_t microseconds);

  std::uint64_t lost() const { return lost_; }

 private:
  void open();
  void rotate();
  void put(std::string_view text);
  bool write(const char* data, std::size_t size);

  int directory_;
  std::size_t file_limit_;
  int file_ = -1;
  std::size_t size_ = 0;  ///< of the file, with what waits
  std::uint64_t lost_ = 0;
  std::array<char, 32> time_{};
  std::array<char, 16384> waiting_{};
  std::size_t waits_ = 0;
};

/// Makes lines out of what a pipe brings. A line longer than the buffer is cut, its rest dropped.
class LineCutter {
 public:
  LineCutter(std::string_view tag, char* buffer, std::size_t limit)
      : tag_(tag), buffer_(buffer), limit_(limit) {}

  void feed(Log& log, const char* data, std::size_t size);
  /// What has no line end yet becomes a line.
  void finish(Log& log);

 private:
  void keep(const char* data, std::size_t size);

  std::string_view tag_;
  char* buffer_;
  std::size_t limit_;
  std::size_t used_ = 0;
  bool cut_ = false;
};

}  // namespace pawl::workers::shim
