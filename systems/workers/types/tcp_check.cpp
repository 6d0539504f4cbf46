// SPDX-License-Identifier: Apache-2.0
#include "workers/types/tcp_check.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "support/descriptor.hpp"
#include "workers/types/address.hpp"
#include "workers/types/stop_event.hpp"

namespace pawl::workers {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* first) const { freeaddrinfo(first); }
};

/// Why there is no connection; empty if there is one.
using Outcome = std::optional<std::string>;

/// Waits for the result of the connect, the timeout, or a stop, which makes `stopped` readable.
Outcome wait_connected(int socket, int stopped, SteadyClock::time_point until, Duration timeout) {
  for (;;) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
    if (rest <= 0) return fmt::format("no answer within {}", to_string(timeout));
    std::array<pollfd, 2> both{{{socket, POLLOUT, 0}, {stopped, POLLIN, 0}}};
    const int ready = poll(both.data(), both.size(), static_cast<int>(rest));
    if (ready < 0 && errno != EINTR) return std::generic_category().message(errno);
    if (both[1].revents != 0) return "stopped";
    if (both[0].revents == 0) continue;
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return std::generic_category().message(problem);
    return std::nullopt;
  }
}

/// Tries the addresses of the name until one accepts. The name lookup cannot be interrupted, but the resolver
/// has timeouts, and the supervisor abandons a collection that takes too long.
Outcome connect_to(const Address& address, Duration timeout, const std::stop_token& stop) {
  const auto until = SteadyClock::now() + timeout;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int looked_up =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &raw);
  if (looked_up != 0) return fmt::format("the name cannot be resolved: {}", gai_strerror(looked_up));
  const std::unique_ptr<addrinfo, FreeAddresses> all(raw);

  const StopEvent stopped(stop);
  Outcome last = "the name has no address";
  for (const auto* one = all.get(); one != nullptr && last; one = one->ai_next) {
    const systems::Descriptor socket(
        ::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, one->ai_protocol));
    if (socket && connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) {
      last.reset();
    } else if (socket && errno == EINPROGRESS) {
      last = wait_connected(socket.get(), stopped.descriptor(), until, timeout);
    } else {
      last = std::generic_category().message(errno);
    }
  }
  return last;
}

}  // namespace

Result<TcpDesired> TcpCheck::derive(TcpDesired read) {
  PAWL_CHECK(parse_address(*read.address));
  PAWL_CHECK(validate_check(limits(read), read.timeout));
  return read;
}

Result<TcpObserved> TcpCheck::collect(CheckRun& run, const TcpDesired& desired,
                                      const CollectContext& context) {
  PAWL_TRY(const auto address, parse_address(*desired.address));
  const auto begun = SteadyClock::now();
  auto refused = connect_to(address, desired.timeout, context.stop);
  const auto taken = std::chrono::duration_cast<Duration>(SteadyClock::now() - begun);
  // An established connection counts, even if stopped meanwhile.
  if (refused && context.stop.stop_requested()) {
    return fail(Code::cancelled, fmt::format("stopped while connecting to {}", *desired.address));
  }
  if (refused) return TcpObserved{run.failed(*std::move(refused), context.now, limits(desired))};
  return TcpObserved{run.passed(taken, context.now, limits(desired))};
}

void add_tcp_check(WorkerTypes& types) { types.add<TcpCheck>(); }

}  // namespace pawl::workers
