// SPDX-License-Identifier: Apache-2.0
#include "workers/process/os.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "workers/process/proc.hpp"

namespace pawl::workers {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(5);
constexpr std::int64_t kLongestPollMs = 60'000;

}  // namespace

Error process_error(std::string_view doing, std::string_view what, int number) {
  return {Code::process_failed,
          fmt::format("cannot {} {}: {}", doing, what, std::generic_category().message(number)),
          {{"errno", std::to_string(number)}}};
}

Result<std::optional<std::string>> read_below(int directory, const char* name, std::size_t most) {
  const Descriptor file(::openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return fail(process_error("open", name));
  std::string text(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const auto count = ::read(file.get(), text.data() + size, most - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(process_error("read", name));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

Result<std::unique_ptr<Waiter>> Waiter::make(std::stop_token stop) {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return fail(process_error("make", "an event to wait for"));
  return std::unique_ptr<Waiter>(new Waiter(std::move(event), std::move(stop)));
}

Waiter::Waiter(Descriptor event, std::stop_token stop)
    : event_(std::move(event)), wake_(std::move(stop), [number = event_.get()] {
        ::eventfd_write(number, 1);  // stays readable, so that later waits return, too
      }) {}

WaitResult Waiter::wait_until_readable(int file, Deadline deadline) const {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const auto wait = std::clamp<std::int64_t>(left.count(), 0, kLongestPollMs);
    std::array<pollfd, 2> waiting{{{event_.get(), POLLIN, 0}, {file, POLLIN, 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(wait));
    if (ready > 0 && waiting[0].revents != 0) return WaitResult::stopped;
    if (ready > 0) return WaitResult::ready;
    if (ready == 0 && wait == left.count()) return WaitResult::timed_out;
    if (left.count() <= 0) return WaitResult::timed_out;
  }
}

WaitResult Waiter::wait_briefly(Deadline deadline) const {
  const auto now = std::chrono::steady_clock::now();
  if (now >= deadline) return WaitResult::timed_out;
  const auto woken = wait_until_readable(-1, std::min<Deadline>(now + kMoment, deadline));
  return woken == WaitResult::timed_out ? WaitResult::ready : woken;
}

Error stopped_waiting(std::string_view what) {
  return {Code::cancelled, fmt::format("{}: a stop was requested before it was done", what)};
}

Result<Descriptor> open_process(pid_t pid, std::uint64_t start) {
  Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno != ESRCH) return fail(process_error("watch", fmt::format("process {}", pid)));
  // Check after opening, so that the check is of the process behind the descriptor.
  if (!process || !lives({pid, start})) return Descriptor();
  return process;
}

}  // namespace pawl::workers
