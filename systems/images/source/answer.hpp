// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Parses what an object store answers. Every byte of it is untrusted.
///
///     AnswerHead head;
///     head.add("HTTP/1.1 206 Partial Content");
///     head.add("Content-Range: bytes 100-199/200");
///     head.range->first;                  // 100

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::s3 {

/// Where a request goes. The host is in lower case; an IPv6 address is in brackets.
struct Url {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;
  std::string path;  ///< decoded; empty where there was none
  bool operator==(const Url&) const = default;
};

/// "http://host[:port][/path]" or with https. No user, query or fragment: none of them has a place in the
/// address of an object that is signed. Error: `invalid_argument`.
Result<Url> parse_url(std::string_view text);

/// "host" or "host:port", as in the header Host.
std::string authority(const Url& url);

/// "https://host:port", for messages and requests.
std::string origin(const Url& url);

/// 1 to 32 lower-case letters, digits and "-".
bool is_region(std::string_view text);

/// "bytes 100-199/200"; of "bytes */200", which comes with a refusal, only the total counts.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  bool operator==(const ContentRange&) const = default;
};

std::optional<ContentRange> parse_content_range(std::string_view text);

/// "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<Time> parse_http_date(std::string_view text);

/// The lines of a head, as far as they matter. A value that is not well-formed counts as absent.
struct AnswerHead {
  int status = 0;
  std::optional<std::uint64_t> length{};
  std::optional<ContentRange> range{};
  std::optional<Time> date{};
  std::string etag{};  ///< as it was sent, with its quotes
  std::string location{};
  std::string region{};  ///< where the bucket is, if the store says so
  bool chunked = false;

  /// A status line begins a new head: there is one more after "100 Continue".
  void add(std::string_view line);
};

/// Why a store refuses: what is in its XML, or nothing. Both are UTF-8 without control characters.
struct Refusal {
  std::string code;     ///< letters, digits and "."
  std::string message;  ///< at most 256 bytes
  std::string region;   ///< the one that would be right, where the store says so
};

Refusal parse_refusal(std::string_view body);

}  // namespace pawl::images::s3
