// SPDX-License-Identifier: Apache-2.0
#include "cli/connection.hpp"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "cli/text.hpp"

namespace pawl::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using Tcp = asio::ip::tcp;
using Failure = boost::system::error_code;
using TlsStream = asio::ssl::stream<Tcp::socket>;

Tcp::socket& socket_of(Tcp::socket& socket) { return socket; }
Tcp::socket& socket_of(TlsStream& stream) { return stream.next_layer(); }

/// Loads the trusted authorities of a connection.
Result<asio::ssl::context> trust(const std::string& ca) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  Failure failure;
  context.set_options(
      asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1,
      failure);
  context.set_verify_mode(asio::ssl::verify_peer, failure);
  if (ca.empty()) {
    context.set_default_verify_paths(failure);
  } else {
    context.load_verify_file(ca, failure);
  }
  if (failure) {
    return fail(Code::invalid_argument,
                fmt::format("the certificates in {} cannot be used: {}; expected a PEM file",
                            ca.empty() ? "the system's store" : ca, failure.message()));
  }
  return context;
}

template <class Stream>
class BeastConnection final : public Connection {
 public:
  template <class... Arguments>
  BeastConnection(Url url, WireLimits limits, Arguments&... arguments)
      : url_(std::move(url)), limits_(limits), stream_(context_, arguments...) {}

  Result<void> connect() {
    Tcp::resolver resolver(context_);
    Failure failure;
    const auto found = resolver.resolve(url_.host, url_.port, failure);
    if (failure) return fail(unreachable(failure.message()));
    failure = wait(limits_.connect, [&](auto done) {
      asio::async_connect(socket_of(stream_), found,
                          [done](Failure outcome, const Tcp::endpoint&) mutable { done(outcome); });
    });
    if (failure == asio::error::connection_refused) {
      return fail(
          unreachable("nothing listens there")
              .with("hint", "start a server with `pawl serve`, or set its address with --url or PAWL_URL"));
    }
    if (failure) return fail(unreachable(failure.message()));
    socket_of(stream_).set_option(Tcp::no_delay(true), failure);
    return {};
  }

  Result<void> shake_hands() {
    // The name is in the certificate; an address has none to be asked for by.
    Failure failure;
    asio::ip::make_address(url_.host, failure);
    if (failure) SSL_set_tlsext_host_name(stream_.native_handle(), url_.host.c_str());
    failure = {};
    stream_.set_verify_callback(asio::ssl::host_name_verification(url_.host), failure);
    if (failure) return fail(unreachable(failure.message()));
    failure = wait(limits_.connect,
                   [&](auto done) { stream_.async_handshake(asio::ssl::stream_base::client, done); });
    if (!failure) return {};
    auto error = unreachable(failure.message());
    if (SSL_get_verify_result(stream_.native_handle()) != X509_V_OK) {
      error = unreachable(X509_verify_cert_error_string(SSL_get_verify_result(stream_.native_handle())));
      error.with("hint", "give the certificate of the authority that signed the server's with --ca FILE");
    }
    return fail(std::move(error));
  }

  Result<HttpAnswer> exchange(const HttpRequest& request) override {
    PAWL_CHECK(write(request));
    bhttp::response_parser<bhttp::string_body> parser;
    parser.header_limit(kHeader);
    parser.body_limit(limits_.bytes);
    const auto failure = wait(limits_.answer, [&](auto done) {
      bhttp::async_read(stream_, buffer_, parser,
                        [done](Failure outcome, std::size_t) mutable { done(outcome); });
    });
    if (failure) return fail(broken(failure));
    auto answer = head_of(parser.get());
    answer.body = std::move(parser.get().body());
    answer.keep = parser.get().keep_alive();
    return answer;
  }

  Result<HttpAnswer> begin(const HttpRequest& request) override {
    PAWL_CHECK(write(request));
    parser_.emplace();
    parser_->header_limit(kHeader);
    parser_->body_limit(boost::none);  // what one event may take is bounded where it is put together
    auto failure = wait(limits_.answer, [&](auto done) {
      bhttp::async_read_header(stream_, buffer_, *parser_,
                               [done](Failure outcome, std::size_t) mutable { done(outcome); });
    });
    if (failure) return fail(broken(failure));
    auto answer = head_of(parser_->get());
    if (answer.status == 200) return answer;
    parser_->body_limit(limits_.bytes);
    failure = wait(limits_.answer, [&](auto done) {
      bhttp::async_read(stream_, buffer_, *parser_,
                        [done](Failure outcome, std::size_t) mutable { done(outcome); });
    });
    if (failure) return fail(broken(failure));
    answer.body = std::move(parser_->get().body());
    return answer;
  }

  Result<std::optional<std::string>> read(Duration most) override {
    if (!reading_) {
      if (parser_->is_done()) return std::optional<std::string>();
      reading_ = true;
      bhttp::async_read_some(stream_, buffer_, *parser_, [this](Failure outcome, std::size_t) {
        read_failure_ = outcome;
        reading_ = false;
      });
    }
    // A read that is not done by then goes on with the next call.
    context_.restart();
    context_.run_for(most);
    if (reading_) return std::optional<std::string>(std::in_place);
    if (read_failure_) return fail(broken(read_failure_));
    return std::optional(std::exchange(parser_->get().body(), {}));
  }

 private:
  static constexpr std::uint32_t kHeader = 64U << 10U;

  /// Runs an operation to its end; closes the socket after the timeout.
  template <class Start>
  Failure wait(Duration most, Start start) {
    std::optional<Failure> outcome;
    start([&outcome](Failure failure) { outcome = failure; });
    context_.restart();
    context_.run_for(most);
    if (outcome) return *outcome;
    Failure ignored;
    socket_of(stream_).close(ignored);
    context_.restart();
    context_.run();
    return asio::error::timed_out;
  }

  Result<void> write(const HttpRequest& request) {
    bhttp::request<bhttp::string_body> message;
    message.method_string(request.method);
    message.target(url_.base + request.target);
    message.version(11);
    message.set(bhttp::field::host, url_.authority());
    message.set(bhttp::field::user_agent, "pawl/" PAWL_VERSION);
    for (const auto& [name, value] : request.headers) message.set(name, value);
    if (!request.body.empty()) message.set(bhttp::field::content_type, "application/json");
    message.body() = request.body;
    message.prepare_payload();
    const auto failure = wait(limits_.answer, [&](auto done) {
      bhttp::async_write(stream_, message, [done](Failure outcome, std::size_t) mutable { done(outcome); });
    });
    if (failure) return fail(unreachable(failure.message()).with("sent", "maybe"));
    return {};
  }

  template <class Message>
  static HttpAnswer head_of(const Message& message) {
    const auto cookie = message[bhttp::field::set_cookie];
    return {.status = static_cast<int>(message.result_int()),
            .content_type = std::string(message[bhttp::field::content_type]),
            .cookie = std::string(cookie.substr(0, cookie.find(';'))),
            .body = {}};
  }

  Error unreachable(std::string_view why) const {
    return {Code::unreachable, fmt::format("{}: {}", url_.text(), printable(why)), {{"url", url_.text()}}};
  }

  /// The error of an absent or malformed answer.
  Error broken(Failure failure) const {
    if (failure == bhttp::error::body_limit) {
      return {Code::answer_invalid,
              fmt::format("{}: the answer is larger than {} bytes", url_.text(), limits_.bytes)};
    }
    const bool protocol = failure.category() == bhttp::make_error_code(bhttp::error::bad_version).category();
    if (protocol && failure != bhttp::error::end_of_stream && failure != bhttp::error::partial_message) {
      return {Code::answer_invalid,
              fmt::format("{}: the answer is not HTTP: {}", url_.text(), failure.message())};
    }
    const bool closed =
        protocol || failure == asio::error::eof || failure == asio::ssl::error::stream_truncated;
    return unreachable(closed ? "the connection was closed before the answer was complete"
                              : failure.message())
        .with("sent", "maybe");
  }

  Url url_;
  WireLimits limits_;
  asio::io_context context_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::response_parser<bhttp::string_body>> parser_;
  bool reading_ = false;
  Failure read_failure_;
};

/// Keeps what the stream refers to.
class TlsConnection final : public Connection {
 public:
  TlsConnection(const Url& url, WireLimits limits, asio::ssl::context context)
      : context_(std::move(context)), inner_(url, limits, context_) {}

  Result<void> connect() {
    PAWL_CHECK(inner_.connect());
    return inner_.shake_hands();
  }
  Result<HttpAnswer> exchange(const HttpRequest& request) override { return inner_.exchange(request); }
  Result<HttpAnswer> begin(const HttpRequest& request) override { return inner_.begin(request); }
  Result<std::optional<std::string>> read(Duration most) override { return inner_.read(most); }

 private:
  asio::ssl::context context_;
  BeastConnection<TlsStream> inner_;
};

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Url& url, const std::string& ca,
                                                     WireLimits limits) {
  if (url.tls) {
    PAWL_TRY(auto context, trust(ca));
    auto made = std::make_unique<TlsConnection>(url, limits, std::move(context));
    PAWL_CHECK(made->connect());
    return made;
  }
  auto made = std::make_unique<BeastConnection<Tcp::socket>>(url, limits);
  PAWL_CHECK(made->connect());
  return made;
}

}  // namespace pawl::cli
