// SPDX-License-Identifier: Apache-2.0
#include "workers/process/proc.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "workers/process/protocol.hpp"

namespace pawl::workers {
namespace {

/// Limit of rounds, in case processes are started faster than they are killed.
constexpr int kRounds = 1000;

int open_proc(int pid, const char* file) {
  char path[64] = "/proc/";
  char* end = std::to_chars(path + 6, path + 20, pid).ptr;
  *end++ = '/';
  std::strcpy(end, file);  // NOLINT(clang-analyzer-security.insecureAPI.strcpy): one of a few short names
  return ::open(path, O_RDONLY | O_CLOEXEC);
}

ssize_t read_some(int file, char* into, std::size_t size) {
  while (true) {
    const auto count = ::read(file, into, size);
    if (count >= 0 || errno != EINTR) return count;
  }
}

template <class Number>
bool next_number(const char*& at, const char* end, Number& number) {
  while (at != end && *at == ' ') ++at;
  const auto [parsed, error] = std::from_chars(at, end, number);
  at = parsed;
  return error == std::errc();
}

bool skip(const char*& at, const char* end, int count) {
  std::int64_t ignored = 0;
  for (int i = 0; i < count; ++i) {
    // Some of these are unsigned and use all bits.
    while (at != end && *at == ' ') ++at;
    if (std::from_chars(at, end, ignored).ec == std::errc::invalid_argument) return false;
    while (at != end && *at != ' ') ++at;
  }
  return true;
}

/// Whether the initial environment of a process has `NAME=mark`.
bool has_mark(int pid, std::string_view mark) {
  std::array<char, 96> wanted{};
  const std::size_t name = std::strlen(shim::kMarkVariable);
  if (name + 1 + mark.size() > wanted.size()) return false;
  std::memcpy(wanted.data(), shim::kMarkVariable, name);
  wanted[name] = '=';
  std::memcpy(wanted.data() + name + 1, mark.data(), mark.size());
  const std::size_t size = name + 1 + mark.size();

  const int file = open_proc(pid, "environ");
  if (file < 0) return false;
  std::array<char, 4096> buffer{};
  std::size_t kept = 0;  // bytes kept from the previous chunk, because the mark may span both
  bool found = false;
  while (!found) {
    const auto count = read_some(file, buffer.data() + kept, buffer.size() - kept);
    if (count <= 0) break;
    const std::size_t filled = kept + static_cast<std::size_t>(count);
    found = ::memmem(buffer.data(), filled, wanted.data(), size) != nullptr;
    kept = filled < size ? filled : size - 1;
    std::memmove(buffer.data(), buffer.data() + filled - kept, kept);
  }
  ::close(file);
  return found;
}

}  // namespace

bool read_stat(int pid, ProcStat& stat) {
  const int file = open_proc(pid, "stat");
  if (file < 0) return false;
  std::array<char, 1024> text{};
  const auto count = read_some(file, text.data(), text.size());
  ::close(file);
  if (count <= 0) return false;
  // The name is in parentheses and may contain parentheses.
  const char* const end = text.data() + count;
  const char* at = end;
  while (at != text.data() && *(at - 1) != ')') --at;
  if (end - at < 3) return false;
  stat = {};
  stat.pid = pid;
  stat.state = at[1];
  at += 2;
  return next_number(at, end, stat.parent) && skip(at, end, 9) && next_number(at, end, stat.user) &&
         next_number(at, end, stat.system) && next_number(at, end, stat.waited_user) &&
         next_number(at, end, stat.waited_system) && skip(at, end, 4) && next_number(at, end, stat.start) &&
         skip(at, end, 1) && next_number(at, end, stat.resident_pages);
}

bool lives(const ProcessKey& key) {
  ProcStat stat;
  return key.pid > 0 && read_stat(key.pid, stat) && stat.start == key.start && !stat.dead();
}

bool kill_marked(std::string_view mark, int timeout_ms) {
  if (mark.empty()) return true;
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    bool ended = true;
    const bool read = each_process([&](int pid) {
      // Open the pidfd first, so that the checked process is the one that is killed.
      const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      if (process < 0) return;
      if (has_mark(pid, mark)) {
        found = true;
        ::syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
        pollfd waiting{process, POLLIN, 0};
        if (::poll(&waiting, 1, timeout_ms) == 0) ended = false;
      }
      ::close(process);
    });
    if (!read || !ended) return false;
    if (!found) return true;
  }
  return false;
}

}  // namespace pawl::workers
