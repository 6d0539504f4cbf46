// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The operating surface of an engine: HTTP API, live events, metrics, and what systems bring along.
///
///     auto server = pawl::Server::start(runtime, *engine, {.listen = "127.0.0.1:7420"}).value();
///     fmt::print("http://127.0.0.1:{}\n", server->port());
///     …
///     server->drain(10s);
///
/// The API is described by the document at `/v1/openapi.json`.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/log.hpp"
#include "pawl/runtime.hpp"
#include "pawl/time.hpp"

namespace pawl {

class Auth;
class Flows;
class System;

/// What a client may cost the server. Beyond them a request is refused and nothing is changed.
struct HttpLimits {
  std::size_t header_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{1} << 20;
  std::size_t connections = 4096;
  std::size_t connections_per_address = 1024;
  std::size_t connections_per_user = 512;              ///< with `auth`
  std::size_t connections_reserved = 32;               ///< the last ones are for operators; at most a quarter
  Duration idle_timeout = std::chrono::seconds(75);    ///< between two requests of a connection
  Duration header_timeout = std::chrono::seconds(10);  ///< from the first byte to the end of the header
  Duration body_timeout = std::chrono::seconds(30);
  /// On a reserved connection: until a whole request has arrived, TLS included. It is short, because the
  /// sender may not be an operator.
  Duration reserved_timeout = std::chrono::seconds(2);
  Duration write_timeout = std::chrono::seconds(30);  ///< for an answer, or a piece of a stream
  std::size_t streams = 2000;                         ///< live event streams at the same time
  std::size_t streams_per_address = 500;
  std::size_t streams_per_user = 100;                ///< with `auth`
  std::size_t streams_reserved = 32;                 ///< the last ones are for operators; at most a quarter
  std::size_t stream_buffer = std::size_t{1} << 20;  ///< bytes that wait for one slow reader, at most
  Duration heartbeat = std::chrono::seconds(15);     ///< what a silent stream sends to show that it lives
};

/// How a server is run. Every field has a default that is safe on one machine.
struct ServerOptions {
  std::string listen = "127.0.0.1:7420";  ///< ADDRESS:PORT; port 0 takes any that is free
  std::size_t threads = 2;                ///< for I/O
  std::size_t handler_threads = 4;        ///< for handlers that block
  HttpLimits limits{};
  std::string certificate{};  ///< PEM file; with `key`: TLS
  std::string key{};
  bool allow_insecure = false;  ///< listen beyond loopback without auth and TLS
  /// Without `auth`, also serve routes that run programs: everyone who reaches the server may run any.
  bool allow_programs_without_auth = false;
  Auth* auth = nullptr;            ///< users and roles; without it everyone may do everything
  std::vector<System*> systems{};  ///< they must outlive the server
  Flows* flows = nullptr;          ///< attached to the engine; must outlive the server. Without: no runs
  std::string backups{};           ///< directory for the backups that administrators ask for; empty: none
  /// Not empty: backups are refused with this text, which says how to make them instead.
  std::string backups_elsewhere{};
  Logger log{};
};

/// Thread-safe. Destroying it stops at once; `drain` first to let requests finish.
class Server {
 public:
  /// Listens and serves. The runtime and the engine must outlive the server. Errors: `invalid_argument`,
  /// `unsafe_address`, and what the system says about the address.
  static Result<std::unique_ptr<Server>> start(Runtime& runtime, Engine& engine, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port it listens on.
  std::uint16_t port() const;

  /// Answers a request as if it had come over the network, without one. Waits for the answer.
  http::Response handle(http::Request request);

  /// Reads the certificate's files again. On an error the old one stays.
  Result<void> reload_certificate();

  /// Accepts no more, ends event streams, lets running requests finish; true when all are done in time.
  bool drain(Duration most);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl
