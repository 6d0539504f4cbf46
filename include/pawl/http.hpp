// SPDX-License-Identifier: Apache-2.0
#pragma once

/// HTTP as values: requests, responses, and routes that describe themselves.
///
///     pawl::http::Route hello{
///         .method = pawl::http::Method::get,
///         .path = "/v1/hello/{name}",
///         .id = "hello",
///         .summary = "Greet a person",
///         .response = R"({"type":"object","properties":{"text":{"type":"string"}}})",
///         .run = [](const pawl::http::Request& request) -> pawl::Result<pawl::http::Response> {
///           return pawl::http::json(pawl::encode(Greeting{"Hello, " + request.parameter("name")}));
///         }};
///
/// The OpenAPI document is made from these descriptions. A handler that fails returns an error; the answer is
/// then problem-details JSON with the status that belongs to the error's code.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::server {
class QuotaSlot;
}

namespace pawl::http {

/// HEAD is answered as GET without a body.
enum class Method : std::uint8_t { get, post, put, patch, remove };

/// "GET", "POST", "PUT", "PATCH", "DELETE".
std::string_view name(Method method) noexcept;

/// What a caller may do; each may do what those before it may.
enum class Role : std::uint8_t { anyone, viewer, operator_, admin };  // NOLINT(readability-identifier-naming)

/// "anyone", "viewer", "operator", "admin".
std::string_view name(Role role) noexcept;
/// The role of that name. Error: `unknown_name`.
Result<Role> parse_role(std::string_view text);

using Pair = std::pair<std::string, std::string>;
using Pairs = std::vector<Pair>;

/// Machines whose names begin so are the server's own: the API neither shows nor changes their instances.
inline constexpr std::string_view kPrivateMachines = "pawl_";

/// One request. A value; const use is safe concurrently.
struct Request {
  Method method = Method::get;
  std::string path;     ///< as it was sent, without the query
  std::string query{};  ///< as it was sent, without the question mark
  Pairs headers{};      ///< in the order they came
  std::string body{};
  std::string remote{};      ///< the address it came from
  bool secure = false;       ///< came over TLS
  Pairs parameters{};        ///< decoded: those of the path, then those of the query; filled by the router
  std::string user{};        ///< the caller; filled by the router
  Role role = Role::anyone;  ///< the caller's role; filled by the router
  std::string identity{};    ///< what limits per user count: tokens may share a name; empty: as `user`
  std::weak_ptr<server::QuotaSlot> connection{};  ///< the server's count of the connection that it came over

  /// The first header of that name, in any case; empty if absent.
  std::string_view header(std::string_view name) const noexcept;
  /// The parameter of that name; empty if absent.
  const std::string& parameter(std::string_view name) const noexcept;
  bool has_parameter(std::string_view name) const noexcept;
};

/// A body that comes over time, such as server-sent events. Thread-safe.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// Called once, before anything is taken; `ready` may be called from any thread, and must be called
  /// whenever there is something to take after nothing was.
  virtual void open(std::function<void()> ready) = 0;
  /// Appends what there is to `out`; false where nothing comes after it.
  virtual bool take(std::string& out) = 0;
  /// Appends what to send to a reader for whom there was nothing for a while.
  virtual void idle(std::string& out) = 0;
  /// The reader is gone; `ready` must not be called any more.
  virtual void close() = 0;
};

/// One answer. A value.
struct Response {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  Pairs headers{};
  std::shared_ptr<Stream> stream{};  ///< in place of the body
  /// More fields for the audit log; `user` replaces the caller.
  Pairs audit{};
  /// Completes the answer on the thread that sends it, for answers that come from a thread with other duties.
  std::function<void(Response&)> finish{};
};

/// An answer with a JSON body, or the error.
Result<Response> json(Result<std::string> body, int status = 200);

/// What an error is answered with: a problem as JSON. For a route that has more to say in it.
Response problem(const Error& error);

/// Each byte that could mean something in a path or a query as %XX.
std::string encode_percent(std::string_view text);

using Handler = std::function<Result<Response>(const Request&)>;
/// Answers later, from any thread, exactly once.
using Reply = std::move_only_function<void(Result<Response>)>;
/// The request is valid during the call only; it must not block.
using AsyncHandler = std::function<void(const Request&, Reply)>;

/// A parameter in the query. Parameters that a route does not list are refused.
struct Parameter {
  std::string name;
  std::string description;
  std::string schema = R"({"type":"string"})";  ///< JSON schema
  bool required = false;
};

/// What is served at a method and a path. A value.
struct Route {
  Method method = Method::get;
  std::string path;          ///< "/v1/hello/{name}"
  std::string id;            ///< unique; names the operation in documents and metrics
  std::string summary;       ///< one line for people
  Role role = Role::viewer;  ///< the least role that may call it
  std::vector<Parameter> query{};
  std::string request{};                          ///< JSON schema of the body; empty: there is none
  std::string response{};                         ///< JSON schema of the answer; empty: not JSON
  std::string content_type = "application/json";  ///< of the answer
  int success = 200;                              ///< the status of an answer that is no error
  int other_success = 0;                          ///< another one, for the same schema; 0: none
  std::vector<Code> errors{};                     ///< what it may be refused with, besides what any may
  bool takes_request_id = false;                  ///< honours the header Idempotency-Key
  bool audited = true;                            ///< false: what it changes is not worth a line of the log
  /// Starts programs on the machine: refused without auth, unless the server's options allow it.
  bool runs_programs = false;
  /// Requests that `run_async` may block on, so that it begins on a worker thread; none: it never does.
  std::function<bool(const Request&)> may_block{};
  Handler run{};             ///< runs on a worker thread and may block
  Handler run_fast{};        ///< in place of `run`: runs on the I/O thread, must not block
  AsyncHandler run_async{};  ///< in place of `run`: answers later
};

}  // namespace pawl::http
