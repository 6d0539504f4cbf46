// SPDX-License-Identifier: Apache-2.0
#include "bench/http_hello.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <thread>
#include <vector>

namespace bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](auto failure, std::size_t) {
      if (!failure) self->answer();
    });
  }

 private:
  void answer() {
    response_ = {http::status::ok, request_.version()};
    response_.set(http::field::content_type, "text/plain");
    response_.body() = "hello";
    response_.keep_alive(request_.keep_alive());
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this()](auto failure, std::size_t) {
      if (!failure) self->read();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

}  // namespace

struct Hello::Body {
  asio::io_context context{2};
  tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
  std::vector<std::jthread> threads;

  void accept() {
    acceptor.async_accept(asio::make_strand(context), [this](auto failure, tcp::socket socket) {
      if (failure) return;
      socket.set_option(tcp::no_delay(true));
      std::make_shared<Connection>(std::move(socket))->read();
      accept();
    });
  }
};

Hello::Hello() : body_(std::make_unique<Body>()) {
  body_->accept();
  for (int i = 0; i < 2; ++i) body_->threads.emplace_back([this] { body_->context.run(); });
}

Hello::~Hello() { body_->context.stop(); }

std::uint16_t Hello::port() const { return body_->acceptor.local_endpoint().port(); }

}  // namespace bench
