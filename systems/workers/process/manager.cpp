// SPDX-License-Identifier: Apache-2.0
#include "workers/process/manager.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "workers/process/launch.hpp"
#include "workers/process/names.hpp"
#include "workers/process/proc.hpp"
#include "workers/process/process_directory.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kLongestIdFile = 4096;

Time time_of(std::int64_t microseconds) { return Time(Duration(microseconds)); }

std::string why_not_started(const DirectoryState& seen) {
  const auto words = std::generic_category().message(seen.record.value);
  if (seen.step == "chdir") return fmt::format("its directory cannot be entered: {}", words);
  if (seen.step == "limit") return fmt::format("its limits cannot be set: {}", words);
  return fmt::format("it cannot be executed ({}): {}", seen.step, words);
}

/// The result of `start` for a generation that was started before.
Result<void> answer_of(std::string_view id, const DirectoryState& seen) {
  if (seen.record.end != End::not_started) return {};
  return fail(Code::process_failed,
              fmt::format("{} generation {}: {}", id, seen.record.generation, why_not_started(seen)),
              {{"errno", std::to_string(seen.record.value)}});
}

ProcessState state_of(const DirectoryState& seen) {
  if (seen.held && (!seen.known || !seen.alive)) return ProcessState::starting;
  if (!seen.known) return ProcessState::absent;
  switch (seen.record.end) {
    case End::none:
      return seen.held ? ProcessState::running : ProcessState::lost;
    case End::not_started:
      return ProcessState::failed_to_start;
    case End::exited:
    case End::killed:
      return ProcessState::exited;
  }
  return ProcessState::lost;
}

std::uint64_t size_below(int directory, const char* name) {
  struct stat about{};
  if (::fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(about.st_size);
}

/// Only to a group whose leader is the command that is meant: its shim keeps its number from being given away
/// until the status tells the end.
void signal_group(const ProcessKey& command, int signal) {
  ProcStat stat;
  if (command.pid > 1 && read_stat(command.pid, stat) && stat.start == command.start) {
    ::kill(-command.pid, signal);
  }
}

/// Where the server is the first process of a container, shims that have ended are its children.
void reap(const ProcessKey& shim) {
  ProcStat stat;
  if (read_stat(shim.pid, stat) && stat.start == shim.start && stat.dead() && stat.parent == ::getpid()) {
    ::waitpid(shim.pid, nullptr, WNOHANG);
  }
}

Result<void> check_arguments(std::string_view id, std::uint64_t generation) {
  if (generation > 0) return {};
  return fail(Code::invalid_argument, fmt::format("{}: generation 0; generations begin at 1", id));
}

Deadline after(Duration duration) {
  // A grace that never ends is asked for with the greatest value, which must not overflow.
  constexpr Duration kLongest = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() + std::clamp(duration, Duration::zero(), kLongest);
}

}  // namespace

Result<ProcessManager> ProcessManager::open(std::string directory, std::string shim_path,
                                            ProcessTimeouts timeouts) {
  if (!directory.starts_with('/') || !shim_path.starts_with('/')) {
    return fail(Code::invalid_argument,
                fmt::format("\"{}\" and \"{}\" are to be absolute paths", directory, shim_path));
  }
  if (::access(shim_path.c_str(), X_OK) != 0) {
    return fail(Code::invalid_argument,
                fmt::format("{} is not a program; name the pawl-shim that came with this server", shim_path));
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail(process_error("make the directory", directory, error.value()));
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return fail(process_error("open the directory", directory));
  // Output of processes may be private.
  if (::fchmod(opened.get(), 0700) != 0) return fail(process_error("protect the directory", directory));
  return ProcessManager(std::move(opened), std::move(shim_path), timeouts);
}

Result<void> ProcessManager::start(std::string_view id, std::uint64_t generation, const ProcessSpec& spec,
                                   std::stop_token stop) const {
  PAWL_CHECK(check_arguments(id, generation));
  PAWL_TRY(const auto place, ProcessDirectory::make(directory_->get(), id));
  PAWL_TRY(const auto waiter, Waiter::make(std::move(stop)));
  const auto deadline = after(timeouts_.start);
  Launch what{shim_path_, escape_id(id), generation, {}};
  while (true) {
    PAWL_TRY(const auto seen, place.read_state());
    if (seen.known && seen.record.generation == generation) return answer_of(id, seen);
    if (seen.known && seen.record.generation > generation) {
      return fail(Code::process_failed, fmt::format("{}: generation {} was started already, {} is older", id,
                                                    seen.record.generation, generation));
    }
    if (seen.runs()) {
      return fail(Code::process_failed, fmt::format("{}: generation {} runs; stop it before {} is started",
                                                    id, seen.record.generation, generation));
    }
    if (!seen.held) {
      // Looked at only now, because what was started once is answered whatever has become of its program.
      if (what.spec.empty()) {
        PAWL_TRY(what.spec, encode_for_shim(spec));
      }
      PAWL_TRY(const auto report, launch(what, place, *waiter, deadline));
      if (report == shim::Report::started) return {};
    }
    // Another shim begins or ends at this moment, or has answered for this generation.
    const auto woken = waiter->wait_briefly(deadline);
    if (woken == WaitResult::stopped) return fail(stopped_waiting(fmt::format("the start of {}", id)));
    if (woken == WaitResult::timed_out) {
      return fail(Code::process_failed, fmt::format("{}: the lock of its directory did not become free", id));
    }
  }
}

Result<ProcessStatus> ProcessManager::status(std::string_view id) const {
  ProcessStatus status;
  PAWL_TRY(const auto place, ProcessDirectory::open(directory_->get(), id));
  if (!place) return status;
  PAWL_TRY(const auto seen, place->read_state());
  status.state = state_of(seen);
  status.log_bytes =
      size_below(place->directory(), shim::kLogFile) + size_below(place->directory(), shim::kOldLogFile);
  if (status.state == ProcessState::absent || status.state == ProcessState::starting) return status;
  const auto& record = seen.record;
  if (!seen.alive) reap(record.shim);
  status.generation = record.generation;
  status.started_at = time_of(record.started_at);
  status.log_lost_bytes = record.log_lost;
  status.cpu_seconds = static_cast<double>(record.cpu_us) / 1e6;
  if (record.end == End::exited) status.exit = {.code = record.value, .at = time_of(record.ended_at)};
  if (record.end == End::killed) status.exit = {.signal = record.value, .at = time_of(record.ended_at)};
  if (record.end == End::not_started) status.error = why_not_started(seen);
  if (status.state != ProcessState::running) return status;
  status.pid = record.command.pid;
  const auto usage = table_->usage(record.shim, record.command);
  status.cpu_seconds = usage.cpu_seconds;
  status.memory_bytes = usage.memory_bytes;
  status.processes = usage.processes;
  return status;
}

Result<void> ProcessManager::kill_remaining(std::string_view id, const DirectoryState& seen) const {
  const auto timeouts = std::chrono::ceil<std::chrono::milliseconds>(timeouts_.kill).count();
  if (kill_marked(seen.mark, static_cast<int>(std::clamp<std::int64_t>(timeouts, 0, 3'600'000)))) return {};
  return fail(Code::process_failed,
              fmt::format("{}: its shim was killed, and its remaining processes cannot be killed", id));
}

Result<void> ProcessManager::end(const ProcessDirectory& place, const DirectoryState& seen, Duration grace,
                                 const Waiter& waiter, int signal) const {
  const auto& record = seen.record;
  PAWL_TRY(const auto shim, open_process(record.shim.pid, record.shim.start));
  if (!shim) return {};
  if (!seen.ended()) {
    signal_group(record.command, signal);
    signal_group(record.command, SIGCONT);  // one that is stopped would not notice
  }
  auto woken = waiter.wait_until_readable(shim.get(), after(grace));
  if (woken == WaitResult::timed_out) {
    signal_group(record.command, SIGKILL);
    ::syscall(SYS_pidfd_send_signal, shim.get(), SIGCONT, nullptr, 0);
    woken = waiter.wait_until_readable(shim.get(), after(timeouts_.kill));
  }
  if (woken == WaitResult::stopped) return fail(stopped_waiting(fmt::format("the end of {}", place.name())));
  if (woken == WaitResult::timed_out) {
    return fail(Code::process_failed,
                fmt::format("{} (process {}) does not end after it was killed; it may be blocked on a device",
                            place.name(), record.command.pid));
  }
  return {};
}

Result<void> ProcessManager::stop(std::string_view id, Duration grace, std::stop_token stop,
                                  int signal) const {
  PAWL_TRY(const auto place, ProcessDirectory::open(directory_->get(), id));
  if (!place) return {};
  PAWL_TRY(const auto waiter, Waiter::make(std::move(stop)));
  const auto deadline = after(timeouts_.start);
  std::uint64_t ended = 0;
  while (true) {
    PAWL_TRY(const auto seen, place->read_state());
    if (seen.lost()) return kill_remaining(id, seen);
    // The process has ended; a later generation is not affected.
    if (!seen.held || (ended != 0 && seen.known && seen.record.generation != ended)) return {};
    if (seen.alive) {
      PAWL_CHECK(end(*place, seen, grace, *waiter, signal));
      ended = seen.record.generation;
      continue;
    }
    // A shim is starting: stop it as soon as its status says what it runs.
    const auto woken = waiter->wait_briefly(deadline);
    if (woken == WaitResult::stopped) return fail(stopped_waiting(fmt::format("the end of {}", id)));
    if (woken == WaitResult::timed_out) {
      return fail(Code::process_failed,
                  fmt::format("{}: its shim does not start, so it cannot be stopped", id));
    }
  }
}

Result<void> ProcessManager::forget(std::string_view id) const {
  PAWL_TRY(const auto place, ProcessDirectory::open(directory_->get(), id));
  if (!place) return {};
  PAWL_TRY(const auto lock, place->take_lock());
  if (!lock) return fail(Code::process_failed, fmt::format("{} runs; stop it before it is forgotten", id));
  PAWL_TRY(const auto text, read_below(place->directory(), shim::kStatusFile, kLongestRecord));
  Record record;
  if (text && read_record(*text, record) && record.end == End::none) {
    DirectoryState left;
    left.mark = record.mark;
    PAWL_CHECK(kill_remaining(id, left));
  }
  return place->remove(directory_->get());
}

Result<std::vector<std::string>> ProcessManager::list() const {
  const int copy = ::openat(directory_->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return fail(process_error("open", "the directory of processes"));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) return fail(process_error("list", "the directory of processes"));
  std::vector<std::string> ids;
  while (const dirent* entry =
             ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
    const std::string name = entry->d_name;
    if (is_hashed(name)) {
      const Descriptor place(
          ::openat(directory_->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!place) continue;
      // Without this file nothing was started there.
      PAWL_TRY(const auto id, read_below(place.get(), shim::kNameFile, kLongestIdFile));
      if (id && !id->empty()) ids.push_back(*id);
    } else if (const auto id = unescape_id(name)) {
      ids.push_back(*id);
    }
  }
  std::ranges::sort(ids);
  return ids;
}

}  // namespace pawl::workers
