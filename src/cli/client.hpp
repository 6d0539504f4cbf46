// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Talks to a server's API: keeps its connection, sends the token, turns refusals into errors.
///
///     Client client({.url = url, .token = token});
///     PAWL_TRY(const auto body, client.get("/v1/machines"));

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/connection.hpp"
#include "cli/url.hpp"
#include "pawl/error.hpp"

namespace pawl::cli {

struct ClientOptions {
  Url url;
  std::string token{};  ///< empty: none is sent
  std::string ca{};     ///< PEM file; empty: whom the system trusts
  WireLimits limits{};
};

/// One event of a stream.
struct StreamEvent {
  std::string id;  ///< the cursor behind it
  std::string type;
  std::string data;  ///< empty where only the cursor moved on
};

/// Parses events from pieces of a stream (text/event-stream). Not thread-safe.
class EventReader {
 public:
  /// Error: `answer_invalid` if one event is larger than any that a server sends.
  Result<void> feed(std::string_view piece);
  std::optional<StreamEvent> next();

 private:
  void line(std::string_view text);

  std::string rest_;
  StreamEvent open_;
  std::deque<StreamEvent> whole_;
};

/// An open event stream. Used by one thread at a time.
class EventStream {
 public:
  explicit EventStream(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  /// The next event; nullopt after the timeout. Errors: `unreachable` if the stream ended or was silent for
  /// longer than a server is, `answer_invalid`.
  Result<std::optional<StreamEvent>> next(Duration most);
  /// An event that has arrived already.
  std::optional<StreamEvent> queued() { return reader_.next(); }

 private:
  std::unique_ptr<Connection> connection_;
  EventReader reader_;
  Duration silent_{};
};

/// Used by one thread at a time.
class Client {
 public:
  explicit Client(ClientOptions options) : options_(std::move(options)) {}

  const Url& url() const { return options_.url; }
  const std::string& ca() const { return options_.ca; }
  /// Another client of the same server.
  Client fresh() const { return Client(options_); }

  /// The body of a 2xx answer. Errors: the server's own by their codes; `unreachable`, `answer_invalid`.
  Result<std::string> get(std::string target);
  Result<std::string> call(HttpRequest request);
  /// The same, but repeated if its outcome is unknown: the request has an Idempotency-Key, so it takes effect
  /// once.
  Result<std::string> call_once(HttpRequest request, const std::string& key);
  /// The answer with any status.
  Result<HttpAnswer> exchange(HttpRequest request);

  /// A stream on a new connection, after a cursor; "": from now on.
  Result<std::unique_ptr<EventStream>> follow(std::string target, const std::string& cursor);

 private:
  void authorise(HttpRequest& request) const;

  ClientOptions options_;
  std::unique_ptr<Connection> connection_;
};

/// The error of an answer other than 2xx.
Error to_error(const HttpAnswer& answer, const Url& url);

/// Whether the error is temporary.
bool is_temporary(Code code);

/// The caller's key, or a new one: with it, repeating a request after a broken connection is safe.
std::string request_key(const std::string& given);

}  // namespace pawl::cli
