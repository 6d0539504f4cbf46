// SPDX-License-Identifier: Apache-2.0
// Accepts connections and spreads them over the I/O threads, which are started and joined here.
#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "server/session.hpp"
#include "server/tls.hpp"

namespace pawl::server {
namespace {

using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
void warn_of_open_key(const std::string& key, const Logger& log) {
  struct stat found{};
  if (::stat(key.c_str(), &found) != 0 || (found.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  log.warn("other users can read the private key", {{"key", key}, {"hint", "chmod 600"}});
}

Result<asio::ip::address> parse_ip(const std::string& text) {
  Failure failure;
  auto address = asio::ip::make_address(text, failure);
  if (!failure) return address;
  return fail(Code::invalid_argument, fmt::format("\"{}\" is not an IP address", text));
}

/// The address that connections are counted by: for IPv6 the /64 network, which usually belongs to one host.
std::string counted_address(asio::ip::address address) {
  if (!address.is_v6()) return address.to_string();
  if (address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes).to_string();
}

/// How often deadlines are checked: a quarter of the shortest one, within bounds.
std::chrono::milliseconds tick_of(const HttpLimits& limits) {
  const auto shortest = std::min({limits.idle_timeout, limits.header_timeout, limits.body_timeout,
                                  limits.reserved_timeout, limits.write_timeout, limits.heartbeat});
  return std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(shortest / 4),
                    std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

class Listener final : public Transport {
 public:
  Listener(Options options, RequestHandler handler)
      : options_(std::move(options)), shared_(std::make_shared<Shared>()) {
    shared_->limits = options_.limits;
    shared_->handler = std::move(handler);
    shared_->log = options_.log;
    for (std::size_t i = 0; i < std::max<std::size_t>(options_.threads, 1); ++i) {
      loops_.push_back(std::make_shared<Loop>());
      guards_.emplace_back(loops_.back()->context.get_executor());
    }
    acceptor_.emplace(loops_.front()->context);
    retry_.emplace(loops_.front()->context.get_executor());
  }
  ~Listener() override { stop(); }

  Result<void> listen() {
    if (!options_.certificate.empty()) {
      PAWL_TRY(tls_, load_certificate(options_.certificate, options_.key));
      warn_of_open_key(options_.key, options_.log);
    }
    Failure failure;
    PAWL_TRY(const auto address, parse_ip(options_.address));
    const asio::ip::tcp::endpoint endpoint(address, options_.port);
    acceptor_->open(endpoint.protocol(), failure);
    if (!failure) acceptor_->set_option(asio::socket_base::reuse_address(true), failure);
    if (!failure) acceptor_->bind(endpoint, failure);
    if (!failure) acceptor_->listen(asio::socket_base::max_listen_connections, failure);
    if (failure) {
      return fail(Code::invalid_argument, fmt::format("cannot listen on {}:{}: {}", options_.address,
                                                      options_.port, failure.message()));
    }
    port_ = acceptor_->local_endpoint(failure).port();
    asio::post(loops_.front()->context, [this] { accept(); });
    const auto every = tick_of(options_.limits);
    for (const auto& loop : loops_) {
      asio::post(loop->context, [loop, every] { loop->tick(every); });
      threads_.emplace_back([loop] { loop->context.run(); });
    }
    return {};
  }

  std::uint16_t port() const override { return port_; }
  const WireCounters& counters() const override { return shared_->counters; }

  Result<void> reload_certificate() override {
    if (options_.certificate.empty()) return {};
    PAWL_TRY(auto fresh, load_certificate(options_.certificate, options_.key));
    warn_of_open_key(options_.key, options_.log);
    const std::lock_guard lock(tls_mutex_);
    tls_ = std::move(fresh);
    return {};
  }

  bool drain(Duration most) override {
    shared_->draining = true;  // from now on every answer is the last one of its connection, and says so
    stop_accepting();
    on_every_loop([](Loop& loop) {
      loop.draining = true;
      const auto sessions = loop.sessions;  // closing one may end it
      for (auto* session : sessions) session->drain();
    });
    const auto deadline = std::chrono::steady_clock::now() + most;
    std::unique_lock lock(gone_mutex_);
    // Closed connections do not notify; polling is good enough for a process that stops.
    while (shared_->counters.connections > 0 && std::chrono::steady_clock::now() < deadline) {
      gone_.wait_for(lock, std::chrono::milliseconds(2));
    }
    return shared_->counters.connections == 0;
  }

  void stop() override {
    if (threads_.empty()) return;
    stop_accepting();
    on_every_loop([](Loop& loop) {
      loop.draining = true;
      const auto sessions = loop.sessions;
      for (auto* session : sessions) session->close();
    });
    guards_.clear();
    // Sessions that wait for an answer end now; an answer that never comes must not block the stop.
    for (const auto& loop : loops_) asio::post(loop->context, [loop] { loop->context.stop(); });
    threads_.clear();  // joins
    for (const auto& loop : loops_) {
      loop->context.restart();
      loop->context.poll();  // lets closed sessions end on this thread, the only one that is left
    }
  }

 private:
  template <class F>
  void on_every_loop(F action) {
    for (const auto& loop : loops_) asio::post(loop->context, [loop, action] { action(*loop); });
  }

  void stop_accepting() {
    asio::post(loops_.front()->context, [this] {
      Failure ignored;
      accepting_ = false;
      acceptor_->close(ignored);
      retry_->cancel();
    });
  }

  void accept() {
    if (!accepting_) return;
    const auto loop = loops_[next_++ % loops_.size()];
    acceptor_->async_accept(loop->context, [this, loop](const Failure& failure, Socket socket) {
      if (!accepting_) return;
      if (failure) {
        // Usually out of file descriptors: without a pause this would spin.
        options_.log.warn("a connection was not accepted", {{"error", failure.message()}});
        retry_->expires_after(std::chrono::milliseconds(50));
        retry_->async_wait([this](const Failure& cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      hand_over(loop, std::move(socket));
      accept();
    });
  }

  void hand_over(const std::shared_ptr<Loop>& loop, Socket socket) {
    Failure ignored;
    const auto peer = socket.remote_endpoint(ignored);
    auto slot = options_.connection_quota->acquire(counted_address(peer.address()));
    ++(slot ? shared_->counters.accepted : shared_->counters.refused);
    Tls tls;
    {
      const std::lock_guard lock(tls_mutex_);
      tls = tls_;
    }
    // Closed without an answer: a handshake costs more than a refusal is worth.
    if (!slot && tls) return;
    asio::post(loop->context,
               [shared = shared_, loop, socket = std::move(socket), slot = std::move(slot), tls]() mutable {
                 if (tls) {
                   run_tls(std::move(shared), loop, std::move(socket), *std::move(slot), tls);
                 } else {
                   run_plain(std::move(shared), loop, std::move(socket), std::move(slot));
                 }
               });
  }

  Options options_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<Loop>> loops_;
  std::vector<asio::executor_work_guard<Executor>> guards_;
  std::optional<Acceptor> acceptor_;  // of the first loop, like the two below
  std::optional<Timer> retry_;
  bool accepting_ = true;
  std::size_t next_ = 0;
  std::uint16_t port_ = 0;
  std::mutex tls_mutex_;
  Tls tls_;
  std::mutex gone_mutex_;
  std::condition_variable gone_;
  std::vector<std::jthread> threads_;
};

}  // namespace

Result<void> Transport::check(const std::string& address, const std::string& certificate,
                              const std::string& key) {
  PAWL_CHECK(parse_ip(address));
  if (!certificate.empty()) PAWL_CHECK(load_certificate(certificate, key));
  return {};
}

Result<std::unique_ptr<Transport>> Transport::open(Options options, RequestHandler handler) {
  auto made = std::make_unique<Listener>(std::move(options), std::move(handler));
  PAWL_CHECK(made->listen());
  return made;
}

}  // namespace pawl::server
