// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One connection, plain or over TLS. The one header that includes Boost.Beast; only the transport's own
/// sources include it.
///
/// A request costs few system calls: deadlines are checked periodically instead of having a timer each,
/// arrived bytes are parsed at once, and answers are written directly while the socket takes them. If only
/// one request is open, the thread that made its answer writes it, which saves the wake-up of the session's
/// thread.
///
/// A statement with co_await has no brace, no ?: and no capture by value: g++ 12 miscompiles those.

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "pawl/server.hpp"
#include "server/transport.hpp"
#include "server/wire.hpp"

namespace pawl::server {

namespace asio = boost::asio;
namespace beast = boost::beast;

using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using TlsStream = asio::ssl::stream<Socket>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
template <class T>
using Awaitable = asio::awaitable<T, Executor>;
using Failure = boost::system::error_code;
inline constexpr asio::use_awaitable_t<Executor> kAwait{};
using TimePoint = std::chrono::steady_clock::time_point;

class SessionBase {
 public:
  virtual ~SessionBase() = default;
  /// On the session's own thread: closes it now if it waits for a request, else after the answer.
  virtual void drain() = 0;
  /// On the session's own thread: closes it, whatever it does.
  virtual void close() = 0;
  /// On the session's own thread, periodically: acts on deadlines that have passed.
  virtual void tick(TimePoint now) = 0;
};

/// One I/O thread with its context and sessions. Only that thread uses the set.
struct Loop {
  asio::io_context context{1};
  Timer ticking{context.get_executor()};
  std::unordered_set<SessionBase*> sessions;
  bool draining = false;

  /// Ticks every session periodically.
  void tick(std::chrono::milliseconds every) {
    ticking.expires_after(every);
    ticking.async_wait([this, every](const Failure& failure) {
      if (failure) return;
      const auto now = std::chrono::steady_clock::now();
      const auto present = sessions;  // one may end
      for (auto* session : present) session->tick(now);
      tick(every);
    });
  }
};

/// Shared by all sessions. Lives until the last session and the last pending answer are gone.
struct Shared {
  HttpLimits limits;
  RequestHandler handler;
  WireCounters counters;
  Logger log;
  std::atomic<std::size_t> unanswered{0};  // requests
  std::atomic<bool> draining{false};       // before the loops know it
};

/// How to write an answer.
struct Form {
  bool keep_alive = true;
  bool head = false;
  bool gzip = false;
};

/// Lets other threads write to the socket of a session that waits for an answer. Thread-safe.
class Shortcut {
 public:
  void open(int socket) {
    const std::lock_guard lock(mutex_);
    socket_ = socket;
  }
  /// No other thread uses the socket after this returns.
  void shut() { open(-1); }
  /// Sends what the socket takes now and returns its size; 0 if it is shut.
  std::size_t send(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    if (socket_ < 0) return 0;
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);  // what is wrong is found again by the session
  }

 private:
  std::mutex mutex_;
  int socket_ = -1;
};

/// Where a session waits for other threads: for an answer, or for the next piece of a stream. Only the
/// shortcut is used off the session's thread. May outlive the session.
struct Exchange {
  explicit Exchange(std::shared_ptr<Loop> home) : loop(std::move(home)) {}
  std::shared_ptr<Loop> loop;
  Shortcut shortcut;
  std::optional<http::Response> response;
  std::string bytes;     // of the response, where they were made already
  std::size_t sent = 0;  // of the bytes
  bool signalled = false;
  std::move_only_function<void()> waiter;  // goes on with the session

  void wake() {
    if (auto go_on = std::exchange(waiter, nullptr)) go_on();
  }
  /// Until `wake` is called.
  auto wait() {
    return asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(
        [this](auto handler) { waiter = [held = std::move(handler)]() mutable { std::move(held)(); }; },
        kAwait);
  }
};

template <class Stream>
class Session final : public SessionBase, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <class... Args>
  Session(std::shared_ptr<Shared> shared, std::shared_ptr<Loop> loop, std::shared_ptr<QuotaSlot> slot,
          Args&&... stream)
      : shared_(std::move(shared)),
        loop_(std::move(loop)),
        slot_(std::move(slot)),
        stream_(std::forward<Args>(stream)...),
        exchange_(std::make_shared<Exchange>(loop_)) {
    loop_->sessions.insert(this);
    ++shared_->counters.connections;
    Failure ignored;
    socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    socket().non_blocking(true, ignored);
    const auto peer = socket().remote_endpoint(ignored);
    remote_ = ignored ? std::string("unknown") : peer.address().to_string();
  }
  ~Session() override {
    exchange_->shortcut.shut();
    loop_->sessions.erase(this);
    slot_.reset();  // before the count of connections falls, so that a free slot follows from it
    --shared_->counters.connections;
  }

  /// The whole life of the connection; `self` keeps it alive.
  static Awaitable<void> run(std::shared_ptr<Session> self) {
    Failure failure;
    if constexpr (kTls) {
      self->arm_reading(self->shared_->limits.header_timeout);
      co_await self->stream_.async_handshake(asio::ssl::stream_base::server,
                                             asio::redirect_error(kAwait, failure));
      if (failure) co_return;
    }
    bool more = true;
    while (more && !self->loop_->draining) more = co_await self->one_request();
    co_await self->finish();
  }

  /// Above a limit of connections: sends the error and closes.
  static Awaitable<void> refuse(std::shared_ptr<Session> self, http::Response response) {
    self->keep_alive_ = false;
    self->arm(std::chrono::seconds(1));
    co_await self->write(response, false);
    co_await self->finish();
  }

  void drain() override {
    if (idle_) close();
  }
  void close() override {
    Failure ignored;
    exchange_->shortcut.shut();
    socket().close(ignored);
    disarm();
    asio::post(loop_->context, [exchange = exchange_] { exchange->wake(); });
  }
  void tick(TimePoint now) override {
    if (now >= deadline_) {
      disarm();
      timed_out_ = true;
      Failure ignored;
      socket().cancel(ignored);
    }
    if (now >= heartbeat_) {
      heartbeat_ = TimePoint::max();
      exchange_->wake();
    }
  }

 private:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;
  static constexpr std::size_t kHeaderPiece = 4096;
  static constexpr std::size_t kBodyPiece = 65536;
  static constexpr std::size_t kDirectBytes = 16384;

  Socket& socket() {
    if constexpr (kTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  /// Cuts off reads and writes after `time` from now. The socket stays open, so that the client can get an
  /// error.
  void arm(Duration time) {
    timed_out_ = false;
    deadline_ = std::chrono::steady_clock::now() + time;
  }
  /// The same for a request. On a reserved connection the whole request shares one short time.
  void arm_reading(Duration time) {
    arm(time);
    if (slot_->needs_operator()) deadline_ = reserved_until_;
  }
  void disarm() { deadline_ = TimePoint::max(); }

  using Parser = beast::http::request_parser<beast::http::string_body>;

  /// Reads more from the client.
  Awaitable<Failure> receive(std::size_t most) {
    Failure failure;
    const auto space = buffer_.prepare(most);
    const auto count = co_await stream_.async_read_some(space, asio::redirect_error(kAwait, failure));
    buffer_.commit(count);
    co_return failure;
  }

  /// Parses what has arrived; true if the request is complete.
  bool parse(Parser& parser, Failure& failure) {
    while (buffer_.size() > 0 && !parser.is_done()) {
      const auto used = parser.put(buffer_.data(), failure);
      buffer_.consume(used);
      if (failure == beast::http::error::need_more) {
        failure = {};
        if (used == 0) return false;
      }
      if (failure) return false;
    }
    return parser.is_done();
  }

  /// Reads one whole request.
  Awaitable<Failure> read_request(Parser& parser) {
    Failure failure;
    bool has_header = false;
    arm_reading(shared_->limits.header_timeout);
    while (!failure && !parse(parser, failure) && !failure) {
      if (parser.is_header_done() && !has_header) {
        has_header = true;
        arm_reading(shared_->limits.body_timeout);
        if (beast::iequals(parser.get()[beast::http::field::expect], "100-continue")) {
          co_await asio::async_write(stream_, asio::buffer(kContinue), asio::redirect_error(kAwait, failure));
          if (failure) co_return failure;
        }
      }
      const auto piece = has_header ? kBodyPiece : kHeaderPiece;
      failure = co_await receive(piece);
    }
    co_return failure;
  }

  Awaitable<bool> one_request() {
    if (buffer_.size() == 0) {
      idle_ = true;
      arm_reading(shared_->limits.idle_timeout);
      const auto gone = co_await receive(kHeaderPiece);
      idle_ = false;
      if (gone) co_return false;
    }
    Parser parser;
    parser.eager(true);
    parser.header_limit(static_cast<std::uint32_t>(shared_->limits.header_bytes));
    parser.body_limit(shared_->limits.body_bytes);
    const auto failure = co_await read_request(parser);
    std::optional<Error> broken;
    if (failure) {
      broken = wire_error(failure, timed_out_, shared_->limits);
      if (!broken) co_return false;
    }
    if (!broken && parser.get().count(beast::http::field::host) != 1)
      broken = malformed_request("it needs one Host header");
    auto request = broken ? std::optional<http::Request>() : take_request(parser.release());
    if (!broken && !request) broken = unsupported_method();
    if (broken) {
      ++shared_->counters.broken;
      keep_alive_ = false;
      const auto response = wire_response(*broken);
      co_await write(response, false);
      co_return false;
    }
    co_return co_await answer(*std::move(request));
  }

  /// On the thread that made the answer. Large answers are compressed later, off the engine's thread.
  static void reply(const std::shared_ptr<Exchange>& exchange, const Shared& shared, Form form,
                    http::Response response) {
    auto& context = exchange->loop->context;
    std::string bytes;
    std::size_t sent = 0;
    const bool elsewhere = !context.get_executor().running_in_this_thread();
    if (!kTls && elsewhere && !shared.draining && shared.unanswered.load(std::memory_order_relaxed) == 1) {
      complete(response);
      const bool packed = form.gzip && is_worth_compressing(response);
      if (!response.stream && !packed && response.body.size() <= kDirectBytes) {
        bytes = to_bytes(response, form.keep_alive, form.head, kTls);
        sent = exchange->shortcut.send(bytes);
        if (sent == 0) bytes.clear();  // the session knows what has changed meanwhile
      }
    }
    // Weak: a stopped loop keeps its dispatched handlers, and the exchange keeps the loop.
    asio::dispatch(context, [waiting = std::weak_ptr(exchange), response = std::move(response),
                             bytes = std::move(bytes), sent]() mutable {
      const auto present = waiting.lock();
      if (!present) return;
      present->response = std::move(response);
      present->bytes = std::move(bytes);
      present->sent = sent;
      present->wake();
    });
  }

  static void complete(http::Response& response) {
    if (const auto rest = std::exchange(response.finish, nullptr)) rest(response);
  }

  Awaitable<bool> answer(http::Request request) {
    const Form form{
        .keep_alive = keep_alive_, .head = head_, .gzip = accepts_gzip(request.header("Accept-Encoding"))};
    disarm();
    if (!kTls) exchange_->shortcut.open(socket().native_handle());
    ++shared_->unanswered;
    shared_->handler(std::move(request),
                     [exchange = exchange_, shared = shared_, form](http::Response response) {
                       reply(exchange, *shared, form, std::move(response));
                     });
    while (!exchange_->response && socket().is_open()) co_await exchange_->wait();
    --shared_->unanswered;
    exchange_->shortcut.shut();
    if (!exchange_->response) co_return false;
    auto response = *std::move(exchange_->response);
    exchange_->response.reset();
    if (loop_->draining || slot_->must_close()) keep_alive_ = false;
    complete(response);
    if (response.stream) {
      co_await stream(std::move(response));
      co_return false;
    }
    auto bytes = std::exchange(exchange_->bytes, {});
    if (bytes.empty()) {
      if (form.gzip) compress(response);
      bytes = to_bytes(response, keep_alive_, form.head, kTls);
    }
    const auto failure = co_await send(bytes, exchange_->sent);
    co_return !failure && keep_alive_;
  }

  Awaitable<bool> write(const http::Response& response, bool head) {
    const auto bytes = to_bytes(response, keep_alive_, head, kTls);
    const auto failure = co_await send(bytes);
    co_return !failure;
  }

  /// Writes what the socket takes at once, then waits for the rest. `sent` bytes have been written before.
  Awaitable<Failure> send(const std::string& bytes, std::size_t sent = 0) {
    Failure failure;
    if constexpr (!kTls) {
      if (sent < bytes.size()) sent += stream_.write_some(asio::buffer(bytes) + sent, failure);
      if (failure == asio::error::would_block) failure = {};
    }
    if (failure || sent == bytes.size()) co_return failure;
    arm(shared_->limits.write_timeout);
    const auto rest = asio::buffer(bytes) + sent;
    co_await asio::async_write(stream_, rest, asio::redirect_error(kAwait, failure));
    disarm();
    co_return failure;
  }

  /// Sends what the stream has until it ends, the reader is gone, or the reader takes too long.
  Awaitable<void> stream(http::Response response) {
    const auto source = response.stream;
    keep_alive_ = false;
    bool more = co_await write(response, head_);
    if (head_) {
      source->close();
      co_return;
    }
    ++shared_->counters.streams;
    source->open([exchange = exchange_] {
      asio::dispatch(exchange->loop->context, [exchange] {
        exchange->signalled = true;
        exchange->wake();
      });
    });
    std::string piece;
    while (more && socket().is_open()) {
      piece.clear();
      exchange_->signalled = false;
      more = source->take(piece);
      if (piece.empty() && more) {
        heartbeat_ = std::chrono::steady_clock::now() + shared_->limits.heartbeat;
        if (!exchange_->signalled) co_await exchange_->wait();
        heartbeat_ = TimePoint::max();
        if (exchange_->signalled || !socket().is_open()) continue;
        source->idle(piece);
      }
      if (piece.empty()) continue;
      const auto failure = co_await send(piece);
      if (failure) break;
    }
    source->close();
    --shared_->counters.streams;
  }

  /// Says goodbye in a way that lets the client read the last answer: with unread input, closing at once
  /// would destroy it on its way.
  Awaitable<void> finish() {
    Failure failure;
    if (!socket().is_open()) co_return;
    arm(std::chrono::seconds(1));
    if constexpr (kTls) co_await stream_.async_shutdown(asio::redirect_error(kAwait, failure));
    socket().shutdown(asio::ip::tcp::socket::shutdown_send, failure);
    std::size_t rest = std::size_t{4} << 20;
    idle_ = true;  // what is left may be cut off when the server drains
    buffer_.clear();
    while (!failure && !timed_out_ && !loop_->draining && rest > 0) {
      const auto space = buffer_.prepare(16384);
      const auto count = co_await socket().async_read_some(space, asio::redirect_error(kAwait, failure));
      rest -= std::min(rest, count);
    }
    close();
  }

  std::optional<http::Request> take_request(beast::http::request<beast::http::string_body> message) {
    keep_alive_ = message.keep_alive();
    head_ = message.method() == beast::http::verb::head;
    const auto method = to_method(message.method_string());
    if (!method) return std::nullopt;
    http::Request request{.method = *method, .remote = remote_, .secure = kTls, .connection = slot_};
    const std::string_view target(message.target().data(), message.target().size());
    const auto mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
    request.headers.reserve(8);
    for (const auto& field : message) request.headers.emplace_back(field.name_string(), field.value());
    request.body = std::move(message.body());
    return request;
  }

  static std::optional<Error> wire_error(const Failure& failure, bool timed_out, const HttpLimits& limits) {
    using beast::http::error;
    if (timed_out) return slow_request();
    if (failure == error::header_limit) return header_too_large(limits);
    if (failure == error::body_limit) return body_too_large(limits);
    if (failure == error::end_of_stream || failure == error::partial_message) return std::nullopt;
    if (failure.category() == beast::http::make_error_code(error::bad_method).category())
      return malformed_request(failure.message());
    return std::nullopt;  // the connection broke
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Loop> loop_;
  std::shared_ptr<QuotaSlot> slot_;  // null if the connection is refused
  Stream stream_;
  TimePoint deadline_ = TimePoint::max();   // of what is read or written
  TimePoint heartbeat_ = TimePoint::max();  // of a stream that is silent
  const TimePoint reserved_until_ = std::chrono::steady_clock::now() + shared_->limits.reserved_timeout;
  bool timed_out_ = false;
  bool idle_ = false;
  bool keep_alive_ = true;
  bool head_ = false;
  std::string remote_;
  std::shared_ptr<Exchange> exchange_;
  beast::flat_buffer buffer_;
};

/// In their own sources, because they take long to compile.
/// Without a slot the client gets the error, and the connection is closed.
void run_plain(std::shared_ptr<Shared> shared, std::shared_ptr<Loop> loop, Socket socket,
               Result<std::shared_ptr<QuotaSlot>> slot);
void run_tls(std::shared_ptr<Shared> shared, std::shared_ptr<Loop> loop, Socket socket,
             std::shared_ptr<QuotaSlot> slot, const std::shared_ptr<asio::ssl::context>& context);

}  // namespace pawl::server
