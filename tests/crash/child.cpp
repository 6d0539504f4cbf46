// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

namespace pawl::crash {
namespace {

Error system_error(std::string_view doing) {
  return Error(Code::store_io, fmt::format("{}: {}", doing, std::strerror(errno)));
}

[[noreturn]] void become_worker(const std::vector<std::string>& arguments, int input, int output) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  std::string program = "/proc/self/exe";
  std::vector<std::string> copies = arguments;
  std::vector<char*> all{program.data()};
  for (auto& argument : copies) all.push_back(argument.data());
  all.push_back(nullptr);
  execv(program.c_str(), all.data());
  _exit(127);
}

void close_if_open(int& file) {
  if (file >= 0) close(std::exchange(file, -1));
}

}  // namespace

Instant Child::now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }

Result<Child> Child::start(const std::vector<std::string>& arguments) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  if (pipe2(input.data(), O_CLOEXEC) != 0 || pipe2(output.data(), O_CLOEXEC) != 0)
    return fail(system_error("making pipes"));
  const auto process = fork();
  if (process < 0) return fail(system_error("forking"));
  if (process == 0) become_worker(arguments, input[0], output[1]);
  close(input[0]);
  close(output[1]);
  fcntl(input[1], F_SETFL, O_NONBLOCK);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  return Child(process, input[1], output[0]);
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      ending_(other.ending_),
      queued_(std::move(other.queued_)),
      partial_(std::move(other.partial_)) {}

Child::~Child() {
  close_if_open(input_);
  close_if_open(output_);
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void Child::send(std::string_view line) {
  queued_ += line;
  queued_ += '\n';
}

Result<void> Child::write_queued() {
  while (!queued_.empty()) {
    const auto written = write(input_, queued_.data(), queued_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return {};
    if (written < 0) return fail(system_error("writing to the worker"));
    queued_.erase(0, static_cast<std::size_t>(written));
  }
  if (ending_) close_if_open(input_);
  return {};
}

Result<void> Child::read_available(Heard& heard) {
  std::array<char, 65536> bytes{};
  while (true) {
    const auto count = read(output_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return {};
    if (count < 0) return fail(system_error("reading from the worker"));
    if (count == 0) {
      heard.ended = true;
      return {};
    }
    partial_.append(bytes.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (auto end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', begin)) {
      heard.lines.push_back(partial_.substr(begin, end - begin));
      begin = end + 1;
    }
    partial_.erase(0, begin);
  }
}

Result<Child::Heard> Child::listen(Instant until) {
  Heard heard;
  while (heard.lines.empty() && !heard.ended) {
    PAWL_CHECK(write_queued());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now());
    if (left.count() <= 0) return heard;
    std::array<pollfd, 2> files{pollfd{output_, POLLIN, 0},
                                pollfd{queued_.empty() ? -1 : input_, POLLOUT, 0}};
    if (poll(files.data(), files.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return fail(system_error("waiting for the worker"));
    PAWL_CHECK(read_available(heard));
  }
  return heard;
}

Result<void> Child::stop() {
  ::kill(process_, SIGSTOP);
  int status = 0;
  waitpid(process_, &status, WUNTRACED);
  if (WIFSTOPPED(status)) return {};
  process_ = -1;
  return fail(Code::internal, fmt::format("the worker ended before it was stopped: {:#x}", status));
}

void Child::go_on() { ::kill(process_, SIGCONT); }

Result<Child::Heard> Child::kill(bool may_have_failed) {
  ::kill(process_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(process_, -1), &status, 0);
  Heard heard;
  PAWL_CHECK(read_available(heard));
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const bool failed = WIFEXITED(status) && WEXITSTATUS(status) == 1;
  if (!killed && !(failed && may_have_failed))
    return fail(Code::internal, fmt::format("the worker ended before it was killed: {:#x}", status));
  return heard;
}

Result<void> Child::wait(int expected) {
  int status = 0;
  waitpid(std::exchange(process_, -1), &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == expected) return {};
  return fail(Code::internal, fmt::format("the worker ended with status {:#x}", status));
}

}  // namespace pawl::crash
