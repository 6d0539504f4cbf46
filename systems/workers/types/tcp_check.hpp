// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker that checks whether a TCP port accepts connections.
///
///     {"address": "plc-7.plant:502", "timeout": "1s", "unhealthy_after": 3, "healthy_after": 1}
///
/// The address is a host name or an IP address, and a port; an IPv6 address is in brackets: "[::1]:502".

#include <chrono>
#include <cstdint>
#include <string>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/check_states.hpp"

namespace pawl::workers {

struct TcpDesired {
  Required<std::string> address{};
  Duration timeout = std::chrono::seconds(1);
  std::uint32_t unhealthy_after = 3;
  std::uint32_t healthy_after = 1;
};

struct TcpObserved {
  CheckState check{};
};

struct TcpCheck : CheckWorker<TcpObserved, TcpDesired, CheckRun> {
  static constexpr std::string_view kType = "tcp_check";

  /// Error: `spec_invalid`.
  static Result<TcpDesired> derive(TcpDesired read);
  static Result<TcpObserved> collect(CheckRun& run, const TcpDesired& desired, const CollectContext& context);
};

void add_tcp_check(WorkerTypes& types);

}  // namespace pawl::workers
