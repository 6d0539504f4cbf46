// SPDX-License-Identifier: Apache-2.0
#include "workers/process/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace pawl::workers {
namespace {

constexpr int kAboveShimFds = 10;
constexpr std::size_t kLongestReport = 256;

/// Moves a descriptor away from the numbers that the shim uses.
Result<Descriptor> lifted(int number) {
  Descriptor lifted(::fcntl(number, F_DUPFD_CLOEXEC, kAboveShimFds));
  if (!lifted) return fail(process_error("duplicate", "a descriptor"));
  return lifted;
}

/// Writes the specification to a memory file.
Result<Descriptor> in_memory(const std::string& text) {
  const Descriptor file(::memfd_create("pawl-process", MFD_CLOEXEC));
  if (!file) return fail(process_error("make", "a file in memory"));
  std::size_t done = 0;
  while (done < text.size()) {
    const auto count = ::write(file.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(process_error("write", "a file in memory"));
    done += static_cast<std::size_t>(count);
  }
  return lifted(file.get());
}

/// How the shim is started: with three descriptors, no environment, and no signal ignored or blocked.
class ShimPlan {
 public:
  ShimPlan(int spec, int directory, int report) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, spec, shim::kSpecFd);
    posix_spawn_file_actions_adddup2(&actions_, directory, shim::kDirectoryFd);
    posix_spawn_file_actions_adddup2(&actions_, report, shim::kReportFd);
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ShimPlan(const ShimPlan&) = delete;
  ShimPlan& operator=(const ShimPlan&) = delete;
  ~ShimPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int spawn(Launch what, pid_t& child) const {
    auto generation = std::to_string(what.generation);
    std::string program = "pawl-shim";
    std::array<char*, 4> arguments{program.data(), what.id.data(), generation.data(), nullptr};
    std::array<char*, 1> environment{nullptr};
    return posix_spawn(&child, what.shim_path.c_str(), &actions_, &attributes_, arguments.data(),
                       environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// Reaps the spawned process, which exits as soon as the shim is detached; kills it if that has not happened,
/// so that nothing starts later.
class Spawned {
 public:
  explicit Spawned(pid_t pid) : pid_(pid) {}
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned() {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }

 private:
  pid_t pid_;
};

/// Reads up to the end of the pipe.
Result<std::string> hear(int pipe, const Launch& what, const Waiter& waiter, Deadline deadline) {
  std::string said;
  while (true) {
    const auto woken = waiter.wait_until_readable(pipe, deadline);
    if (woken == WaitResult::stopped) return fail(stopped_waiting(fmt::format("the start of {}", what.id)));
    if (woken == WaitResult::timed_out) {
      return fail(Code::process_failed, fmt::format("{} generation {}: {} did not come up in time", what.id,
                                                    what.generation, what.shim_path));
    }
    std::array<char, kLongestReport> buffer{};
    const auto count = ::read(pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(process_error("hear from", what.shim_path));
    if (count == 0) return said;
    if (said.size() < kLongestReport) said.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Result<shim::Report> understand(std::string_view said, const Launch& what) {
  const auto report = static_cast<shim::Report>(said.empty() ? '\0' : said.front());
  switch (report) {
    case shim::Report::started:
    case shim::Report::failed:
    case shim::Report::held:
    case shim::Report::used:
      return report;
    case shim::Report::broken: {
      int number = 0;
      const auto* const end = std::from_chars(said.data() + 1, said.data() + said.size(), number).ptr;
      const std::string_view step(end, said.data() + said.size());
      return fail(process_error(fmt::format("start {} generation {}: in its shim:", what.id, what.generation),
                                step.starts_with(' ') ? step.substr(1) : step, number));
    }
  }
  return fail(
      Code::process_failed,
      fmt::format("{} generation {}: its shim ended without a word; check that {} is the pawl-shim of "
                  "this server",
                  what.id, what.generation, what.shim_path));
}

}  // namespace

Result<shim::Report> launch(const Launch& what, const ProcessDirectory& place, const Waiter& waiter,
                            Deadline deadline) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(process_error("make a pipe for", what.shim_path));
  const Descriptor heard(ends[0]);
  Descriptor told(ends[1]);
  PAWL_TRY(auto report, lifted(told.get()));
  PAWL_TRY(const auto spec, in_memory(what.spec));
  PAWL_TRY(const auto directory, lifted(place.directory()));
  pid_t child = 0;
  const int number = ShimPlan(spec.get(), directory.get(), report.get()).spawn(what, child);
  if (number != 0) return fail(process_error("run", what.shim_path, number));
  const Spawned spawned(child);
  told = Descriptor();
  report = Descriptor();
  PAWL_TRY(const auto said, hear(heard.get(), what, waiter, deadline));
  return understand(said, what);
}

}  // namespace pawl::workers
