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
#include "workers/partial_tree.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

/// Limits the log if a file with mistakes is written repeatedly.
constexpr Duration kReportInterval = 10s;
constexpr std::size_t kMaxLogged = 20;

/// Changes with the file. Editors replace files, other programs write into them.
std::string stamp_of(const std::string& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) return fmt::format("errno {}", errno);
  // Both times: programs that copy files may set the modification time.
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
                fmt::format("cannot read the file: {}", std::generic_category().message(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

void TreeFile::poll(Supervisor& supervisor) {
  // Take the stamp before the text, so that a write in between is read at the next poll.
  const auto stamp = stamp_of(path_);
  {
    const std::lock_guard lock(mutex_);
    if (stamp == applied_ || std::exchange(seen_, stamp) != stamp) return;
  }
  const auto text = read_text(path_);
  if (!text) {
    return report({{.file = path_,
                    .problem = text.error().message(),
                    .expected = "a YAML file with the key children"}});
  }
  if (stamp_of(path_) != stamp || !apply(supervisor, *text)) return;
  const std::lock_guard lock(mutex_);
  applied_ = stamp;
}

bool TreeFile::apply(Supervisor& supervisor, const std::string& text) {
  const auto now = supervisor.applied();
  if (!now) {
    report({{.file = path_, .problem = now.error().message()}});
    return false;
  }
  bool done = true;
  auto part = read_partial_tree(text, path_, supervisor.types(), now->first);
  if (part.tree && *part.tree != now->first) {
    const auto applied = supervisor.apply(*part.tree);
    if (applied) {
      log_.info("applied the worker tree",
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
    log_.info("the worker file has no more mistakes", {{"file", path_}});
    return;
  }
  const auto now = runtime_.instant();
  if (logged_ && now - *logged_ < kReportInterval) {
    unlogged_ += problems_.size();
    return;
  }
  for (std::size_t i = 0; i < problems_.size() && i < kMaxLogged; ++i) {
    log_.warn(describe(problems_[i]), {{"file", path_}, {"line", problems_[i].line}});
  }
  const auto more = problems_.size() > kMaxLogged ? problems_.size() - kMaxLogged : 0;
  if (more + unlogged_ > 0) {
    log_.warn("more mistakes in the worker file", {{"file", path_}, {"mistakes", more + unlogged_}});
  }
  logged_ = now;
  unlogged_ = 0;
}

std::vector<ConfigProblem> TreeFile::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

}  // namespace pawl::workers
