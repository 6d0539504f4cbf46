// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker that checks whether an HTTP server answers as expected.
///
///     {"url": "https://mes.plant/health", "method": "GET", "expect_status": [204, "200-202"],
///      "expect_body": "\"ok\"", "timeout": "1s", "headers": {"accept": "application/json"}}
///
/// Redirects are not followed and proxies are not used, because the server itself is checked.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/check_states.hpp"

namespace pawl::workers {

/// Written as 200 or as "200-299".
struct StatusRange {
  int first = 200;
  int last = 299;
  bool operator==(const StatusRange&) const = default;
};

/// Days until the server's certificate expires.
enum class Certificate : std::uint8_t { none, over_30_days, over_7_days, over_1_day, within_1_day, expired };

/// The class of `expires` at `now`.
Certificate certificate_at(Time expires, Time now);

struct HttpDesired {
  Required<std::string> url{};
  std::string method = "GET";  ///< or HEAD
  std::vector<StatusRange> expect_status{StatusRange{}};
  std::string expect_body{};  ///< must be in the first 64 KiB; empty: any body
  Duration timeout = std::chrono::seconds(1);
  std::map<std::string, std::string> headers{};
  std::string ca_file{};  ///< certificates to trust instead of the system's
  std::uint32_t unhealthy_after = 3;
  std::uint32_t healthy_after = 1;
};

struct HttpObserved {
  CheckState check{};
  std::optional<int> status{};  ///< of the last answer
  Certificate certificate = Certificate::none;
};

struct HttpCheck : CheckWorker<HttpObserved, HttpDesired, CheckRun> {
  static constexpr std::string_view kType = "http_check";
  static constexpr std::array<std::string_view, 2> kConfidential = {"headers", "expect_body"};

  /// Error: `spec_invalid`.
  static Result<HttpDesired> derive(HttpDesired read);
  static Result<HttpObserved> collect(CheckRun& run, const HttpDesired& desired,
                                      const CollectContext& context);
};

void add_http_check(WorkerTypes& types);

}  // namespace pawl::workers

namespace pawl {

template <>
struct Codec<workers::StatusRange> {
  static void write(JsonWriter& out, const workers::StatusRange& value);
  static bool read(JsonValue in, workers::StatusRange& out, DecodeFailure& why);
};

}  // namespace pawl
