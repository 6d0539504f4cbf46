// SPDX-License-Identifier: Apache-2.0
#include "store/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace pawl {
namespace {

std::size_t bytes_of(const SqlValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.get())) return text->size();
  if (const auto* blob = std::get_if<Blob>(&value.get())) return blob->bytes.size();
  return 0;
}

/// Rounded to milliseconds, for messages.
std::string in_milliseconds(QueryWatch::Clock::duration time) {
  return to_string(Duration(std::chrono::floor<std::chrono::milliseconds>(time)));
}

}  // namespace

Result<void> check_query_limits(const QueryLimits& limits) {
  if (limits.timeout > Duration::zero() && limits.rows > 0 && limits.bytes > 0) return {};
  return fail(Code::invalid_argument, "query_limits: timeout, rows and bytes must be positive");
}

QueryWatch::QueryWatch(const QueryLimits& limits, const std::stop_token& closing,
                       const std::stop_token& caller)
    : limits_(limits),
      closing_(closing),
      caller_(caller),
      // A very large limit must not overflow.
      deadline_(created_ + std::min<Duration>(limits.timeout, std::chrono::hours(24 * 365))),
      on_closing_(closing, Forward{either_}),
      on_caller_(caller, Forward{either_}) {}

Result<void> QueryWatch::check() const {
  if (closing_.stop_requested()) {
    return fail(Code::stopped, "the store is closing; the query was not finished");
  }
  if (caller_.stop_requested()) return fail(Code::cancelled, "the query was asked to stop");
  const auto now = Clock::now();
  if (now < deadline_) return {};
  const auto limit = to_string(limits_.timeout);
  if (!begun_) {
    return fail(
        Code::timed_out,
        fmt::format("the query waited {} for a connection, which other queries kept in use; the limit "
                    "query_limits.timeout is {}",
                    in_milliseconds(now - created_), limit),
        {{"waited", in_milliseconds(now - created_)}, {"limit", limit}, {"option", "query_limits.timeout"}});
  }
  return fail(Code::timed_out,
              fmt::format("the query was stopped after it had waited {} for a connection and run for {}; the "
                          "limit query_limits.timeout is {}",
                          in_milliseconds(*begun_ - created_), in_milliseconds(now - *begun_), limit),
              {{"waited", in_milliseconds(*begun_ - created_)},
               {"ran", in_milliseconds(now - *begun_)},
               {"limit", limit},
               {"option", "query_limits.timeout"}});
}

Result<void> QueryRows::add(std::vector<SqlValue> row) {
  for (const auto& value : row) bytes_ += bytes_of(value);
  if (rows_.size() == limits_.rows) {
    return fail(Code::too_large,
                fmt::format("the query has more than {} rows, the limit query_limits.rows; add a LIMIT, or "
                            "read it in parts",
                            limits_.rows),
                {{"limit", std::to_string(limits_.rows)}, {"option", "query_limits.rows"}});
  }
  if (bytes_ > limits_.bytes) {
    return fail(Code::too_large,
                fmt::format("the texts and blobs of the query's result have more than {} bytes, the limit "
                            "query_limits.bytes; read it in parts",
                            limits_.bytes),
                {{"limit", std::to_string(limits_.bytes)}, {"option", "query_limits.bytes"}});
  }
  rows_.push_back(std::move(row));
  return {};
}

}  // namespace pawl
