// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "pawl/log.hpp"

namespace pawl {
namespace {

/// How many bytes the system took; fewer than all when it refuses the rest.
std::size_t write_all(int descriptor, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      pollfd full{.fd = descriptor, .events = POLLOUT, .revents = 0};
      if (::poll(&full, 1, -1) < 0 && errno != EINTR) return done;
    } else if (errno != EINTR) {
      return done;
    }
  }
  return done;
}

}  // namespace

void StreamSink::write(const LogRecord& record) {
  std::string line;
  line.reserve(256);
  if (options_.format == LogFormat::json) {
    append_json(line, record);
  } else {
    append_text(line, record, options_.colour);
  }
  const std::lock_guard lock(mutex_);
  if (torn_) line.insert(0, 1, '\n');
  const std::size_t done = write_all(descriptor_, line);
  if (done < line.size()) lost_.fetch_add(1, std::memory_order_relaxed);
  if (done > 0) torn_ = done < line.size();
}

void CallbackSink::write(const LogRecord& record) {
  const std::lock_guard lock(mutex_);
  callback_(record);
}

}  // namespace pawl
