// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Limits of the application's queries, for every store.
///
///     QueryWatch watch(limits, closing, stop);
///     PAWL_TRY(auto reader, queries.lease(watch));    // blocks no longer than the query may take
///     watch.begin();
///     QueryRows rows(limits);
///     …PAWL_CHECK(watch.check()); PAWL_CHECK(rows.add(row));…
///     return rows.take();

#include <chrono>
#include <optional>
#include <stop_token>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/sql.hpp"

namespace pawl {

/// Error: `invalid_argument`.
Result<void> check_query_limits(const QueryLimits& limits);

/// Deadline and stop requests of one query while it waits for a connection and runs. `limits` is borrowed.
/// `check`, `deadline` and `stop` are thread-safe.
class QueryWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `closing` is requested when the store closes, `caller` when the caller no longer wants the result.
  QueryWatch(const QueryLimits& limits, const std::stop_token& closing, const std::stop_token& caller);

  /// The query has got a connection.
  void begin() { begun_ = Clock::now(); }

  /// Errors: `stopped`, `cancelled`, `timed_out`.
  Result<void> check() const;
  Clock::time_point deadline() const { return deadline_; }
  /// Requested when `closing` or `caller` is.
  std::stop_token stop() const { return either_.get_token(); }

 private:
  struct Forward {
    std::stop_source& to;
    void operator()() const { to.request_stop(); }
  };

  const QueryLimits& limits_;
  std::stop_token closing_;
  std::stop_token caller_;
  Clock::time_point created_ = Clock::now();
  Clock::time_point deadline_;
  std::optional<Clock::time_point> begun_;
  std::stop_source either_;
  std::stop_callback<Forward> on_closing_;
  std::stop_callback<Forward> on_caller_;
};

/// Collects the rows of a result.
class QueryRows {
 public:
  explicit QueryRows(const QueryLimits& limits) : limits_(limits) {}

  /// Error: `too_large`.
  Result<void> add(std::vector<SqlValue> row);
  std::vector<std::vector<SqlValue>> take() { return std::move(rows_); }

 private:
  const QueryLimits& limits_;
  std::vector<std::vector<SqlValue>> rows_;
  std::size_t bytes_ = 0;
};

}  // namespace pawl
