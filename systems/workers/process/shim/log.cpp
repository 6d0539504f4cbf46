// SPDX-License-Identifier: Apache-2.0
#include "workers/process/shim/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "workers/process/protocol.hpp"

namespace pawl::workers::shim {
namespace {

void put_digits(char* into, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    into[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

}  // namespace

void Log::set_time(std::int64_t microseconds) {
  // Formatted by hand, because the library would load the time zone database, which is larger than the shim.
  using std::chrono::days;
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(microseconds)};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::memcpy(time_.data(), "0000-00-00T00:00:00.000000Z", kTimeChars);
  put_digits(time_.data(), static_cast<unsigned>(static_cast<int>(date.year())), 4);
  put_digits(time_.data() + 5, static_cast<unsigned>(date.month()), 2);
  put_digits(time_.data() + 8, static_cast<unsigned>(date.day()), 2);
  put_digits(time_.data() + 11, static_cast<unsigned>(clock.hours().count()), 2);
  put_digits(time_.data() + 14, static_cast<unsigned>(clock.minutes().count()), 2);
  put_digits(time_.data() + 17, static_cast<unsigned>(clock.seconds().count()), 2);
  put_digits(time_.data() + 20, static_cast<unsigned>(clock.subseconds().count()), 6);
}

void Log::open() {
  file_ = ::openat(directory_, kLogFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat about{};
  size_ = file_ >= 0 && ::fstat(file_, &about) == 0 ? static_cast<std::size_t>(about.st_size) : 0;
}

void Log::rotate() {
  flush();
  if (file_ >= 0) ::close(file_);
  // If it cannot be renamed, truncate it, so that it does not grow without limit.
  const bool moved = ::renameat(directory_, kLogFile, directory_, kOldLogFile) == 0;
  open();
  if (!moved && file_ >= 0 && ::ftruncate(file_, 0) == 0) size_ = 0;
}

bool Log::write(const char* data, std::size_t size) {
  while (size > 0) {
    const auto count = file_ < 0 ? -1 : ::write(file_, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      lost_ += size;
      return false;
    }
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

void Log::flush() {
  const std::size_t count = std::exchange(buffered_, 0);
  write(buffer_.data(), count);
}

void Log::put(std::string_view text) {
  if (text.size() > buffer_.size() - buffered_) flush();
  if (text.size() > buffer_.size()) {
    write(text.data(), text.size());
    return;
  }
  std::memcpy(buffer_.data() + buffered_, text.data(), text.size());
  buffered_ += text.size();
}

void Log::line(std::string_view tag, std::string_view text, bool cut) {
  const std::size_t size = kTimeChars + 1 + tag.size() + (cut ? 1 : 0) + 1 + text.size() + 1;
  if (file_ < 0) open();
  if (size_ + size > file_limit_) rotate();
  if (file_ < 0 || size_ + size > file_limit_) {
    lost_ += size;
    return;
  }
  put({time_.data(), kTimeChars});
  put(" ");
  put(tag);
  put(cut ? "+ " : " ");
  put(text);
  put("\n");
  size_ += size;
}

void LineCutter::keep(const char* data, std::size_t size) {
  const std::size_t fits = std::min(size, limit_ - used_);
  std::memcpy(buffer_ + used_, data, fits);
  used_ += fits;
  cut_ = cut_ || fits < size;
}

void LineCutter::feed(Log& log, const char* data, std::size_t size) {
  while (size > 0) {
    const auto* const end = static_cast<const char*>(std::memchr(data, '\n', size));
    if (end == nullptr) {
      keep(data, size);
      return;
    }
    const auto length = static_cast<std::size_t>(end - data);
    keep(data, length);
    log.line(tag_, {buffer_, used_}, std::exchange(cut_, false));
    used_ = 0;
    data = end + 1;
    size -= length + 1;
  }
}

void LineCutter::finish(Log& log) {
  if (used_ > 0 || cut_) log.line(tag_, {buffer_, used_}, std::exchange(cut_, false));
  used_ = 0;
}

}  // namespace pawl::workers::shim
