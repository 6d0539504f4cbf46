// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One connection to a server, plain or over TLS. Every call ends within its time; after an error it is
/// closed. connection.cpp is the one source of the command that knows Boost.Beast.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/url.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::cli {

struct HttpRequest {
  std::string method = "GET";
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

struct HttpAnswer {
  int status = 0;
  std::string content_type;
  std::string cookie;  ///< the first Set-Cookie, up to its attributes
  std::string body;
  bool keep = false;  ///< the connection can be used again
};

struct WireLimits {
  Duration connect = std::chrono::seconds(10);
  Duration answer = std::chrono::seconds(60);
  std::size_t bytes = std::size_t{64} << 20;  ///< of an answer's body
};

/// Used by one thread at a time.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// `ca` is a PEM file with trusted certificate authorities; empty: those of the system. Error:
  /// `unreachable`; `invalid_argument` where the file cannot be used.
  static Result<std::unique_ptr<Connection>> open(const Url& url, const std::string& ca, WireLimits limits);

  /// Errors: `unreachable`, with the field `sent` once the request may have reached the server;
  /// `answer_invalid`.
  virtual Result<HttpAnswer> exchange(const HttpRequest& request) = 0;

  /// The same for a stream: with status 200, `read` returns its body.
  virtual Result<HttpAnswer> begin(const HttpRequest& request) = 0;
  /// The next piece of the body of `begin`; empty after the timeout, nullopt at its end.
  /// Errors: as above.
  virtual Result<std::optional<std::string>> read(Duration most) = 0;
};

}  // namespace pawl::cli
