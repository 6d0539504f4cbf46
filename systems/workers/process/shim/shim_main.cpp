// SPDX-License-Identifier: Apache-2.0
/// pawl-shim: the parent of one supervised process. The process outlives the server, and its exit is
/// recorded.
///
/// It holds the lock of the worker's directory as long as the process lives, so that a worker never has two
/// processes. It records the generation before it runs it, so that no generation runs twice. It takes no
/// commands: the manager signals the process group directly, and a shutdown of the machine ends the command
/// first and the shim with it. Therefore it ignores every signal that can be ignored.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "workers/process/proc.hpp"
#include "workers/process/protocol.hpp"
#include "workers/process/record.hpp"
#include "workers/process/shim/command.hpp"
#include "workers/process/shim/log.hpp"
#include "workers/process/shim/spec.hpp"

namespace pawl::workers::shim {
namespace {

constexpr int kExitHeld = 75;
constexpr int kExitUsed = 76;
constexpr int kExitBroken = 70;
constexpr int kExitUsage = 64;

constexpr int kKillTimeoutMs = 10'000;
constexpr int kStatusTries = 60;  ///< a second apart, while the disk is full
constexpr std::size_t kDrainLimit = std::size_t{1} << 20U;

std::array<char, kLongestRecord> status_text;
std::array<char, 16384> chunk;
std::array<char, 17> mark;
std::array<char, 64> mark_setting;

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * std::int64_t{1'000'000} + time.tv_nsec / 1000;
}

void say(std::string_view text) {
  [[maybe_unused]] const auto sent = ::write(kReportFd, text.data(), text.size());
}

int end_with(Report report, int code) {
  const char letter = static_cast<char>(report);
  say({&letter, 1});
  return code;
}

/// "b<errno> <step>"
int end_broken(int number, std::string_view step) {
  std::array<char, 16> digits{static_cast<char>(Report::broken)};
  const auto* const end = std::to_chars(digits.data() + 1, digits.data() + digits.size(), number).ptr;
  say({digits.data(), static_cast<std::size_t>(end - digits.data())});
  say(" ");
  say(step);
  return kExitBroken;
}

/// Detaches from the server: its descriptors, terminal, session and signals.
void detach_from_server() {
  ::close_range(kFirstOtherFd, ~0U, 0);
  for (const int fd : {kSpecFd, kDirectoryFd, kReportFd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGCHLD) ::signal(number, SIG_IGN);
  }
  // A fault of the shim itself must end it.
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS})
    ::signal(number, SIG_DFL);
  if (::chdir("/") != 0) ::_exit(kExitBroken);
}

/// 0, EAGAIN if another process holds the lock, or an errno. An open file description lock, because the
/// manager can query it without taking it.
int take_lock() {
  const int file = ::openat(kDirectoryFd, kLockFile, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno == ENOENT ? EAGAIN : errno;
  struct flock whole{};
  whole.l_type = F_WRLCK;
  if (::fcntl(file, F_OFD_SETLK, &whole) != 0) return errno == EACCES ? EAGAIN : errno;
  // The worker may have been removed since the file was opened.
  struct stat about{};
  if (::fstat(file, &about) != 0) return errno;
  return about.st_nlink == 0 ? EAGAIN : 0;
}

/// 0, ENOENT if there is no status, or another errno.
int read_status(Record& record) {
  const int file = ::openat(kDirectoryFd, kStatusFile, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno;
  const auto count = ::read(file, status_text.data(), status_text.size());
  const int number = errno;
  ::close(file);
  if (count < 0) return number;
  return read_record({status_text.data(), static_cast<std::size_t>(count)}, record) ? 0 : EBADMSG;
}

/// Atomic, and durable if it returns 0.
int write_status(const Record& record) {
  const std::size_t size = write_record(record, status_text);
  if (size == 0) return EMSGSIZE;
  const int file =
      ::openat(kDirectoryFd, kStatusNewFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return errno;
  const auto count = ::write(file, status_text.data(), size);
  int number = count < 0 ? errno : count == static_cast<ssize_t>(size) ? 0 : ENOSPC;
  if (number == 0 && ::fsync(file) != 0) number = errno;
  ::close(file);
  if (number == 0 && ::renameat(kDirectoryFd, kStatusNewFile, kDirectoryFd, kStatusFile) != 0) number = errno;
  if (number == 0 && ::fsync(kDirectoryFd) != 0) number = errno;
  return number;
}

bool make_mark() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return false;
  for (std::size_t i = 0; i < 16; ++i) mark[i] = "0123456789abcdef"[(random >> (4 * i)) & 15U];
  const std::size_t name = std::strlen(kMarkVariable);
  std::memcpy(mark_setting.data(), kMarkVariable, name);
  mark_setting[name] = '=';
  std::memcpy(mark_setting.data() + name + 1, mark.data(), mark.size());
  return true;
}

/// Reads what is available; false at the end of the pipe.
bool pump(int pipe, LineCutter& lines, Log& log) {
  const auto count = ::read(pipe, chunk.data(), chunk.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  lines.feed(log, chunk.data(), static_cast<std::size_t>(count));
  return true;
}

/// Reads the remaining output. Bounded, because another process may still have the pipe and write to it.
void drain(int pipe, LineCutter& lines, Log& log) {
  std::size_t taken = 0;
  while (taken < kDrainLimit) {
    const auto count = ::read(pipe, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    lines.feed(log, chunk.data(), static_cast<std::size_t>(count));
    taken += static_cast<std::size_t>(count);
  }
  lines.finish(log);
}

/// Logs the output until the command has exited and its process group is gone.
Ending wait_for_exit(const Command& command, LineCutter& out, LineCutter& err, Log& log, int ended) {
  std::array<pollfd, 3> waiting{{{ended, POLLIN, 0}, {command.out, POLLIN, 0}, {command.err, POLLIN, 0}}};
  Ending ending;
  while (ending.end == End::none) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    log.set_time(now());
    // Ignore a pipe at its end.
    if (waiting[1].revents != 0 && !pump(command.out, out, log)) waiting[1].fd = -1;
    if (waiting[2].revents != 0 && !pump(command.err, err, log)) waiting[2].fd = -1;
    log.flush();
    if (waiting[0].revents != 0) {
      signalfd_siginfo ignored{};
      [[maybe_unused]] const auto count = ::read(ended, &ignored, sizeof ignored);
      ending = check_children(command);
    }
  }
  kill_rest(command);
  log.set_time(now());
  drain(command.out, out, log);
  drain(command.err, err, log);
  log.flush();
  return ending;
}

/// Records the exit. Waits while the disk is full, because the exit must be known.
int write_end(Record& record) {
  record.ended_at = now();
  int number = 0;
  for (int i = 0; i < kStatusTries; ++i) {
    number = write_status(record);
    if (number != ENOSPC && number != EDQUOT) break;
    ::poll(nullptr, 0, 1000);
  }
  return number;
}

/// Runs the generation. The caller holds the lock.
int run(Record record, Spec& spec) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);  // NOLINT(concurrency-mt-unsafe): there is one thread
  const int ended = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (ended < 0) return end_broken(errno, "signalfd");
  if (!make_mark()) return end_broken(errno, "getrandom");
  auto* const lines = static_cast<char*>(
      ::mmap(nullptr, 2 * spec.line_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (lines == MAP_FAILED) return end_broken(errno, "have memory for lines");
  spec.environment[0] = mark_setting.data();

  Command command;
  if (const auto trouble = fork_command(spec, command); trouble.number != 0) {
    return end_broken(trouble.number, trouble.step);
  }
  ProcStat self;
  if (!read_stat(::getpid(), self)) return end_broken(ESRCH, "stat");
  record.shim = {self.pid, self.start};
  record.command = command.key;
  record.mark = {mark.data(), 16};
  record.started_at = now();
  // The command starts only after this is durable, so that this generation never runs again.
  if (const int number = write_status(record); number != 0) return end_broken(number, "write the status");
  if (const auto trouble = run_command(command); trouble.number != 0) {
    record.end = End::not_started;
    record.value = trouble.number;
    record.step = trouble.step;
    if (const int number = write_end(record); number != 0) return end_broken(number, "write the status");
    return end_with(Report::failed, 0);
  }
  end_with(Report::started, 0);
  ::close(kReportFd);
  drop_spec(spec);

  Log log(kDirectoryFd, spec.log_bytes);
  LineCutter out("out", lines, spec.line_bytes);
  LineCutter err("err", lines + spec.line_bytes, spec.line_bytes);
  const Ending ending = wait_for_exit(command, out, err, log, ended);
  record.end = ending.end;
  record.value = ending.value;
  record.cpu_us = ending.cpu_us;
  record.log_lost = log.lost();
  const int number = write_end(record);
  // Now the pid may be reused. Reap everything: an init process in a container may not do it.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
  return number == 0 ? 0 : kExitBroken;
}

int start(const char* id, std::uint64_t generation) {
  Spec spec;
  if (const int number = read_spec(kSpecFd, spec); number != 0) return end_broken(number, "read the spec");
  ::close(kSpecFd);
  const int locked = take_lock();
  if (locked == EAGAIN) return end_with(Report::held, kExitHeld);
  if (locked != 0) return end_broken(locked, "lock");
  Record before;
  const int number = read_status(before);
  if (number != 0 && number != ENOENT) return end_broken(number, "read the status");
  if (number == 0 && before.generation >= generation) return end_with(Report::used, kExitUsed);
  // The previous shim was killed: end its remaining processes first.
  if (number == 0 && before.end == End::none && !kill_marked(before.mark, kKillTimeoutMs)) {
    return end_broken(ETIMEDOUT, "end the processes of an earlier shim");
  }
  Record record;
  record.id = id;
  record.generation = generation;
  return run(record, spec);
}

}  // namespace
}  // namespace pawl::workers::shim

int main(int argc, char** argv) {
  using namespace pawl::workers::shim;
  std::uint64_t generation = 0;
  if (argc == 3) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), generation);
  if (argc != 3 || generation == 0) {
    constexpr std::string_view kUsage = "pawl-shim is started by the pawl server; do not run it directly\n";
    [[maybe_unused]] const auto sent = ::write(STDERR_FILENO, kUsage.data(), kUsage.size());
    return kExitUsage;
  }
  detach_from_server();
  const pid_t detached = ::fork();
  if (detached < 0) return end_broken(errno, "fork");
  // _exit: nothing of the library has to be cleaned up.
  if (detached > 0) ::_exit(0);
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::_exit(start(argv[1], generation));
}
