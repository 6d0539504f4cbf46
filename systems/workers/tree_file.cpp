// SPDX-License-Identifier: Apache-2.0
#include "workers/tree_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "workers/config/yaml.hpp"
#include "workers/good_part.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

/// A file that is written again and again with mistakes does not fill the log.
constexpr Duration kBetweenReports = 10s;
constexpr std::size_t kMostLogged = 20;

/// Changes whenever the file does: editors replace files, others write into them.
std::string stamp_of(const std::string& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) return fmt::format("errno {}", errno);
  // Times of both kinds: programs that copy files may set the one.
  return fmt::format("{} {} {}.{:09} {}.{:09}", seen.st_ino, seen.st_size, seen.st_mtim.tv_sec,
                     seen.st_mtim.tv_nsec, seen.st_ctim.tv_sec, seen.st_ctim.tv_nsec);
}

Result<std::string> read_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(YamlLimits::kBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file && !file.eof())) {
    return fail(Code::config_invalid,
                fmt::format("it cannot be read: {}", std::generic_category().message(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

void TreeFile::look(Supervisor& supervisor) {
  // The stamp is taken before the text: what is written in between is read the next time.
  const auto stamp = stamp_of(path_);
  {
    const std::lock_guard lock(mutex_);
    if (stamp == taken_ || std::exchange(seen_, stamp) != stamp) return;
  }
  const auto text = read_text(path_);
  if (!text) {
    return report({{.file = path_, .problem = text.error().message(), .expected = "a file with children:"}});
  }
  if (stamp_of(path_) != stamp || !take(supervisor, *text)) return;
  const std::lock_guard lock(mutex_);
  taken_ = stamp;
}

bool TreeFile::take(Supervisor& supervisor, const std::string& text) {
  const auto now = supervisor.applied();
  if (!now) {
    report({{.file = path_, .problem = now.error().message()}});
    return false;
  }
  bool done = true;
  auto part = take_good(text, path_, supervisor.types(), now->first);
  if (part.tree && *part.tree != now->first) {
    const auto applied = supervisor.apply(*part.tree);
    if (applied) {
      log_.info("the tree of workers was applied",
                {{"file", path_}, {"version", *applied}, {"mistakes", part.problems.size()}});
    } else {
      done = false;
      part.problems.push_back({.file = path_,
                               .key = std::string(applied.error().field("worker")),
                               .problem = applied.error().message()});
    }
  }
  report(std::move(part.problems));
  return done;
}

void TreeFile::report(std::vector<ConfigProblem> problems) {
  const std::lock_guard lock(mutex_);
  if (problems == problems_) return;
  problems_ = std::move(problems);
  if (problems_.empty()) {
    log_.info("the file of workers has no mistakes any more", {{"file", path_}});
    return;
  }
  const auto now = runtime_.instant();
  if (logged_ && now - *logged_ < kBetweenReports) {
    unlogged_ += problems_.size();
    return;
  }
  for (std::size_t i = 0; i < problems_.size() && i < kMostLogged; ++i) {
    log_.warn(describe(problems_[i]), {{"file", path_}, {"line", problems_[i].line}});
  }
  const auto more = problems_.size() > kMostLogged ? problems_.size() - kMostLogged : 0;
  if (more + unlogged_ > 0) {
    log_.warn("more mistakes in the file of workers", {{"file", path_}, {"mistakes", more + unlogged_}});
  }
  logged_ = now;
  unlogged_ = 0;
}

std::vector<ConfigProblem> TreeFile::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

}  // namespace pawl::workers
