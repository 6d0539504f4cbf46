// SPDX-License-Identifier: Apache-2.0
#include "workers/types/services.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <system_error>

namespace pawl::workers {

bool wait_really(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock lock(mutex);
  never_notified.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

Result<std::optional<std::string>> read_small_file(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == ENOENT) return std::nullopt;
  std::string text(kMost, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(kMost));
  if (!file && !file.eof()) {
    return fail(Code::invalid_argument,
                fmt::format("{} cannot be read: {}", path, std::generic_category().message(errno)),
                {{"path", path}});
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace pawl::workers
