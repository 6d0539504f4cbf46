// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>

#include "workers/process/manager.hpp"
#include "workers/process/process_directory.hpp"
#include "workers/process/protocol.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kMostLines = 10'000;
constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

/// A log file at the size it had when it was opened.
struct OpenLog {
  Descriptor file{};
  struct stat about{};
};

Result<OpenLog> open_log(int directory, const char* name) {
  OpenLog log;
  log.file = Descriptor(::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!log.file && errno != ENOENT) return fail(process_error("open", name));
  if (log.file && ::fstat(log.file.get(), &log.about) != 0) return fail(process_error("look at", name));
  return log;
}

/// The last bytes of a log, starting with a whole line.
Result<std::string> last_bytes(const OpenLog& log, std::size_t most) {
  if (!log.file) return std::string();
  const auto size = static_cast<std::size_t>(log.about.st_size);
  const std::size_t wanted = std::min(size, most);
  std::string text(wanted, '\0');
  std::size_t got = 0;
  while (got < wanted) {
    const auto count =
        ::pread(log.file.get(), text.data() + got, wanted - got, static_cast<off_t>(size - wanted + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(process_error("read", "a log"));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  if (wanted < size) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

/// Empty for a text that is not a log line, as after a power loss.
std::optional<LogLine> parse_line(std::string_view line) {
  if (line.size() < shim::kTimeChars + 5 || line[shim::kTimeChars] != ' ') return std::nullopt;
  const auto at = parse_time(line.substr(0, shim::kTimeChars));
  if (!at) return std::nullopt;
  line.remove_prefix(shim::kTimeChars + 1);
  LogLine parsed{.at = *at, .error = line.starts_with("err")};
  if (!parsed.error && !line.starts_with("out")) return std::nullopt;
  line.remove_prefix(3);
  parsed.cut = line.starts_with('+');
  if (parsed.cut) line.remove_prefix(1);
  if (!line.starts_with(' ')) return std::nullopt;
  parsed.text = line.substr(1);
  return parsed;
}

/// Prepends the last lines of a text, up to the requested number.
void prepend_lines(std::string_view text, std::size_t wanted, std::deque<LogLine>& lines) {
  while (!text.empty() && lines.size() < wanted) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const auto before = text.rfind('\n');
    const auto begin = before == std::string_view::npos ? 0 : before + 1;
    if (auto line = parse_line(text.substr(begin))) lines.push_front(*std::move(line));
    text = text.substr(0, begin);
  }
}

}  // namespace

Result<std::vector<LogLine>> ProcessManager::tail(std::string_view id, std::size_t lines) const {
  std::deque<LogLine> found;
  PAWL_TRY(const auto place, ProcessDirectory::open(directory_->get(), id));
  if (!place) return std::vector<LogLine>();
  const std::size_t wanted = std::min(lines, kMostLines);
  // Open the newer one first: if it is rotated now, the second open finds the same file, which is skipped.
  PAWL_TRY(const auto log, open_log(place->directory(), shim::kLogFile));
  PAWL_TRY(const auto old, open_log(place->directory(), shim::kOldLogFile));
  PAWL_TRY(const auto text, last_bytes(log, kMostBytes));
  // Skip a line that is still being written.
  prepend_lines(std::string_view(text).substr(0, text.rfind('\n') + 1), wanted, found);
  const bool same = log.file && old.file && log.about.st_ino == old.about.st_ino;
  if (found.size() < wanted && !same && text.size() < kMostBytes) {
    PAWL_TRY(const auto older, last_bytes(old, kMostBytes - text.size()));
    prepend_lines(older, wanted, found);
  }
  return std::vector<LogLine>(std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
}

}  // namespace pawl::workers
