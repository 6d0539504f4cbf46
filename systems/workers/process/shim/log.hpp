// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes the output of a command line by line to a log of limited size: `log` and, before it, `log.1`, each
/// of at most half the limit. Lines that cannot be written are counted and dropped, so that a full disk does
/// not block the command. Not thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl::workers::shim {

class Log {
 public:
  /// Appends to the log in the directory. `log_bytes` limits both files together.
  Log(int directory, std::size_t log_bytes) : directory_(directory), file_limit_(log_bytes / 2) {}

  /// Adds a line, given without its line end. `cut`: the line was longer. Buffered until `flush`.
  void line(std::string_view tag, std::string_view text, bool cut);
  void flush();

  /// Sets the time of the following lines.
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
  std::size_t size_ = 0;  ///< of the file, with buffered lines
  std::uint64_t lost_ = 0;
  std::array<char, 32> time_{};
  std::array<char, 16384> buffer_{};
  std::size_t buffered_ = 0;
};

/// Splits the data of a pipe into lines. A line longer than the buffer is cut; its rest is dropped.
class LineCutter {
 public:
  LineCutter(std::string_view tag, char* buffer, std::size_t limit)
      : tag_(tag), buffer_(buffer), limit_(limit) {}

  void feed(Log& log, const char* data, std::size_t size);
  /// Logs the last line if it has no line end.
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
