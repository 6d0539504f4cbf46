// SPDX-License-Identifier: Apache-2.0
#include "workers/process/shim/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "workers/process/proc.hpp"

namespace pawl::workers::shim {
namespace {

/// The error of the forked process, sent through a pipe that closes on a successful exec.
struct Message {
  int number = 0;
  char step = 0;
};

std::string_view step_name(char step) {
  switch (step) {
    case 'c':
      return "chdir";
    case 'l':
      return "limit";
    case 'o':
      return "output";
    default:
      return "exec";
  }
}

[[noreturn]] void report_and_exit(int pipe, char step) {
  const Message message{errno, step};
  [[maybe_unused]] const auto sent = ::write(pipe, &message, sizeof message);
  ::_exit(127);
}

bool limit(int resource, rlim_t value) {
  if (value == 0) return true;
  const rlimit both{value, value};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Runs in the forked process.
[[noreturn]] void execute(const Spec& spec, pid_t shim, int out, int err, int go, int trouble) {
  // The shim may have died before prctl.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != shim) ::_exit(127);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) {
    report_and_exit(trouble, 'o');
  }
  char word = 0;
  ssize_t count = 0;
  while ((count = ::read(go, &word, 1)) < 0 && errno == EINTR) {}
  if (count != 1) ::_exit(127);
  if (::chdir(spec.directory) != 0) report_and_exit(trouble, 'c');
  if (!limit(RLIMIT_NOFILE, spec.open_files) || !limit(RLIMIT_AS, spec.memory)) report_and_exit(trouble, 'l');
  default_signals();
  ::execve(spec.program, spec.arguments, spec.environment);
  report_and_exit(trouble, 'e');
}

std::uint64_t cpu_of(const rusage& usage) {
  constexpr std::int64_t kMillion = 1'000'000;
  return static_cast<std::uint64_t>((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * kMillion +
                                    usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// waitid with resource usage, which the libc wrapper does not return.
int wait_for(idtype_t kind, pid_t pid, siginfo_t& info, int options, rusage* usage) {
  info.si_pid = 0;
  while (true) {
    const auto result = ::syscall(SYS_waitid, kind, pid, &info, options, usage);
    if (result == 0 || errno != EINTR) return static_cast<int>(result);
  }
}

/// Whether a child is alive. Waits for stopped children only: if all children have exited, that is ECHILD.
bool has_living_child() {
  siginfo_t info{};
  return wait_for(P_ALL, 0, info, WSTOPPED | WNOHANG | WNOWAIT, nullptr) == 0 || errno != ECHILD;
}

}  // namespace

StartError fork_command(const Spec& spec, Command& command) {
  int out[2];
  int err[2];
  int go[2];
  int trouble[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0 || ::pipe2(go, O_CLOEXEC) != 0 ||
      ::pipe2(trouble, O_CLOEXEC) != 0) {
    return {errno, "pipe"};
  }
  const pid_t shim = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return {errno, "fork"};
  if (child == 0) {
    ::close(go[1]);  // otherwise the pipe would never end
    execute(spec, shim, out[1], err[1], go[0], trouble[1]);
  }
  // Parent and child both do it, so that the group exists whichever runs first.
  ::setpgid(child, child);
  for (const int end : {out[1], err[1], go[0], trouble[1]}) ::close(end);
  command = {{child, 0}, out[0], err[0], go[1], trouble[0]};
  for (const int end : {command.out, command.err}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  ProcStat stat;
  if (!read_stat(child, stat)) return {ESRCH, "stat"};
  command.key.start = stat.start;
  return {};
}

StartError run_command(Command& command) {
  const char word = 'g';
  if (::write(command.go, &word, 1) != 1) return {errno, "go"};
  ::close(command.go);
  Message message;
  ssize_t count = 0;
  while ((count = ::read(command.error, &message, sizeof message)) < 0 && errno == EINTR) {}
  ::close(command.error);
  if (count != sizeof message) return {};
  return {message.number, step_name(message.step)};
}

Ending check_children(const Command& command) {
  while (true) {
    siginfo_t info{};
    if (wait_for(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT, nullptr) != 0 || info.si_pid == 0) return {};
    if (info.si_pid != command.key.pid) {
      wait_for(P_PID, info.si_pid, info, WEXITED, nullptr);
      continue;
    }
    rusage own{};
    rusage others{};
    wait_for(P_PID, command.key.pid, info, WEXITED | WNOWAIT, &own);
    ::getrusage(RUSAGE_CHILDREN, &others);
    return {info.si_code == CLD_EXITED ? End::exited : End::killed, info.si_status,
            cpu_of(own) + cpu_of(others)};
  }
}

void kill_rest(const Command& command) {
  ::kill(-command.key.pid, SIGKILL);
  const pid_t shim = ::getpid();
  while (has_living_child()) {
    const bool read = each_process([&](int pid) {
      ProcStat stat;
      if (pid == command.key.pid || !read_stat(pid, stat) || stat.parent != shim) return;
      ::kill(pid, SIGKILL);
      // Its children become children of the shim before this returns, and the next round finds them.
      siginfo_t info{};
      wait_for(P_PID, pid, info, WEXITED, nullptr);
    });
    if (!read) ::poll(nullptr, 0, 100);  // temporarily out of memory or descriptors
  }
}

}  // namespace pawl::workers::shim
