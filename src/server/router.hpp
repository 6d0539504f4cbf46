// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Finds the route of a request, checks the request against the route's description, and runs the handler.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/log.hpp"
#include "pawl/runtime.hpp"

namespace pawl::server {

/// Decodes %XX and, if asked, + as a blank. nullopt for a malformed escape.
std::optional<std::string> decode_percent(std::string_view text, bool plus_is_blank);

/// Counts of one route. Thread-safe. Classes of status, so that their number is bounded.
struct RouteCounters {
  static constexpr std::array<double, 10> kBounds{0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                  0.025,  0.05,  0.1,    0.5,   2.5};
  std::array<std::atomic<std::uint64_t>, 6> by_class{};  // [2]: 2xx …
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> seconds{};
  std::atomic<std::uint64_t> microseconds{0};

  void note(int status, Duration taken);
};

/// Error: `forbidden` if the caller's role is below the one that the route needs.
Result<void> check_role(const http::Request& request, const http::Route& route);

/// Fills in the caller's user and role. Errors: `unauthenticated`, `forbidden` (no CSRF token),
/// `rate_limited`.
using Authenticate = std::function<Result<void>(http::Request&, const http::Route&)>;

using Audit = std::function<void(const http::Request&, const http::Route&, const http::Response&)>;
using AdmitStream = std::function<Result<std::shared_ptr<http::Stream>>(
    std::shared_ptr<http::Stream>, std::shared_ptr<const http::Request>, const http::Route&)>;

/// Immutable once it serves, so thread-safe.
class Router {
 public:
  struct Entry {
    http::Route route;
    std::vector<std::string> segments;
    std::unique_ptr<RouteCounters> counters;
  };

  Router(Runtime& runtime, std::size_t workers, Logger log);
  /// Waits for all pending answers.
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Errors: `invalid_argument` for a route without a handler, or an id or (method, path) used twice.
  Result<void> add(http::Route route);
  void authenticate_with(Authenticate authenticate) { authenticate_ = std::move(authenticate); }
  /// Handles a GET without a route; if it returns nothing, the request is refused.
  void fall_back_to(std::function<std::optional<http::Response>(const http::Request&)> fallback) {
    fallback_ = std::move(fallback);
  }
  /// Called after every request that may have changed something.
  void audit_with(Audit audit) { audit_ = std::move(audit); }
  /// Called with each stream before the answer; the stream or error that it returns replaces it.
  void admit_streams_with(AdmitStream admit) { admit_stream_ = std::move(admit); }

  /// Answers exactly once, possibly on another thread.
  void handle(http::Request request, std::move_only_function<void(http::Response)> reply);

  const std::vector<Entry>& entries() const { return entries_; }
  /// Counts of requests without a route.
  const RouteCounters& unmatched() const { return unmatched_; }
  /// Counts of requests that the fallback answered.
  const RouteCounters& fallen_back() const { return fallen_back_; }

 private:
  struct Match {
    const Entry* entry = nullptr;
    http::Pairs parameters;
  };
  Result<Match> find(const http::Request& request) const;
  Error no_route(const http::Request& request) const;
  Result<void> prepare(http::Request& request, const http::Route& route) const;
  void run(const Entry& entry, const std::shared_ptr<http::Request>& request, http::Reply reply);

  Runtime& runtime_;
  Logger log_;
  std::shared_ptr<void> running_;  // every request that runs holds it, whether it is answered or dropped
  std::future<void> none_runs_;
  std::vector<Entry> entries_;
  RouteCounters unmatched_;
  RouteCounters fallen_back_;
  Authenticate authenticate_;
  std::function<std::optional<http::Response>(const http::Request&)> fallback_;
  Audit audit_;
  AdmitStream admit_stream_;
  std::unique_ptr<ThreadPool> workers_;  // last: its jobs use the rest
};

}  // namespace pawl::server
