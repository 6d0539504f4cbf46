// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The HTTP transport: sockets, TLS, limits, keep-alive, draining. The only part that uses Boost.Beast, which
/// this header hides.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/log.hpp"
#include "pawl/server.hpp"
#include "server/quota.hpp"

namespace pawl::server {

/// What happened on the wire, for metrics. Thread-safe.
struct WireCounters {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> refused{0};  // above a limit of connections
  std::atomic<std::int64_t> connections{0};
  std::atomic<std::int64_t> streams{0};
  std::atomic<std::uint64_t> broken{0};  // malformed, too large or too slow to be a request
};

using RequestHandler = std::function<void(http::Request, std::move_only_function<void(http::Response)>)>;

/// Thread-safe. Owns its threads: they are started by `open` and joined by `stop`, nowhere else.
class Transport {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  // 0: any that is free
    std::size_t threads = 2;
    HttpLimits limits{};
    std::shared_ptr<Quota> connection_quota{};  // not null
    std::string certificate{};                  // PEM files; empty: no TLS
    std::string key{};
    Logger log{};
  };

  /// `handler` is called on an I/O thread for every request; its answer may come from any thread.
  static Result<std::unique_ptr<Transport>> open(Options options, RequestHandler handler);
  /// Whether `open` would take this address, which is one of IP, and these files. Opens nothing.
  static Result<void> check(const std::string& address, const std::string& certificate,
                            const std::string& key);
  virtual ~Transport() = default;

  virtual std::uint16_t port() const = 0;
  virtual const WireCounters& counters() const = 0;

  /// New TLS connections use what the files hold now. On an error the old certificate stays.
  virtual Result<void> reload_certificate() = 0;

  /// Accepts no more; closes idle connections at once and others after their answer. True when all are
  /// closed, false after `most`.
  virtual bool drain(Duration most) = 0;

  /// Closes what is open and joins the threads.
  virtual void stop() = 0;
};

}  // namespace pawl::server
