// SPDX-License-Identifier: Apache-2.0
#include "workers/types/mqtt_session.hpp"

#include <fmt/format.h>
#include <mosquitto.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "pawl/assert.hpp"
#include "workers/types/stop_event.hpp"

namespace pawl::workers {
namespace {

constexpr int kRefusedTopic = 0x80;
/// Where Debian, and OpenSSL as it comes, have the authorities that they trust.
constexpr const char* kTrusted = "/etc/ssl/certs";
constexpr int kTurnMilliseconds = 1000;  // the library counts keepalives in seconds

/// Once per program. It is never undone: other code of the program may use the library.
void use_library() {
  static const int done = mosquitto_lib_init();
  PAWL_ASSERT(done == MOSQ_ERR_SUCCESS, "libmosquitto is ready", done);
}

std::string words_of(int outcome) {
  return outcome == MOSQ_ERR_ERRNO ? std::generic_category().message(errno) : mosquitto_strerror(outcome);
}

}  // namespace

/// Everything that is said to the library, on the session's thread alone. Its own loop is not used, because
/// it connects again by itself, which is the worker's, and cannot be stopped while it connects.
class MqttSession::Pump {
  struct FreeHandle {
    void operator()(mosquitto* handle) const { mosquitto_destroy(handle); }
  };

 public:
  explicit Pump(MqttSession& session) : session_(session) {
    use_library();
    handle_.reset(mosquitto_new(session.settings_.client_id.c_str(), true, this));
    PAWL_ASSERT(handle_ != nullptr, "memory for a client", errno);
    mosquitto_log_callback_set(handle_.get(), [](mosquitto*, void* pump, int level, const char* text) {
      if (level == MOSQ_LOG_ERR) static_cast<Pump*>(pump)->last_error_ = text;
    });
    mosquitto_connect_callback_set(
        handle_.get(), [](mosquitto*, void* pump, int code) { static_cast<Pump*>(pump)->on_connect(code); });
    mosquitto_disconnect_callback_set(handle_.get(), [](mosquitto*, void* pump, int code) {
      auto& self = *static_cast<Pump*>(pump);
      self.end(self.reason_of(code));
    });
    mosquitto_subscribe_callback_set(
        handle_.get(), [](mosquitto*, void* pump, int message, int count, const int* granted) {
          static_cast<Pump*>(pump)->on_subscribe(message, count > 0 ? granted[0] : kRefusedTopic);
        });
    mosquitto_message_callback_set(handle_.get(),
                                   [](mosquitto*, void* pump, const mosquitto_message* message) {
                                     // What the broker had kept says nothing about whether somebody sends
                                     // now.
                                     if (!message->retain)
                                       static_cast<Pump*>(pump)->session_.monitor_->message(this_moment());
                                   });
  }

  void run(const std::stop_token& stop) {
    const StopEvent stopped(stop);
    if (const int outcome = connect(); outcome != MOSQ_ERR_SUCCESS) end(reason_of(outcome));
    while (!over_ && !stop.stop_requested()) turn(stopped.descriptor());
    if (over_) return;
    mosquitto_disconnect(handle_.get());
    end("disconnected as it was asked to");
  }

 private:
  int connect() {
    const auto& settings = session_.settings_;
    if (!settings.username.empty()) {
      const char* password = settings.password.empty() ? nullptr : settings.password.c_str();
      const int outcome = mosquitto_username_pw_set(handle_.get(), settings.username.c_str(), password);
      if (outcome != MOSQ_ERR_SUCCESS) return outcome;
    }
    if (settings.tls) {
      const auto& tls = *settings.tls;
      const auto path = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
      const int outcome =
          mosquitto_tls_set(handle_.get(), path(tls.ca_file), tls.ca_file.empty() ? kTrusted : nullptr,
                            path(tls.certificate), path(tls.key), nullptr);
      if (outcome != MOSQ_ERR_SUCCESS) return outcome;
    }
    return mosquitto_connect_async(handle_.get(), settings.address.host.c_str(), settings.address.port,
                                   static_cast<int>(settings.keepalive.count()));
  }

  /// What the library says; of TLS it says why in its log.
  std::string reason_of(int outcome) const {
    if (outcome != MOSQ_ERR_TLS || last_error_.empty()) return words_of(outcome);
    return fmt::format("TLS: {}", last_error_);
  }

  void turn(int stopped) {
    const int socket = mosquitto_socket(handle_.get());
    if (socket < 0) return end("the connection was lost");
    // While TLS is set up something waits to be written all the time, but only what is read gets it on.
    const bool writes = mosquitto_want_write(handle_.get()) && !(sets_up_tls_ && reached_);
    const auto asked = static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
    std::array<pollfd, 2> both{{{socket, asked, 0}, {stopped, POLLIN, 0}}};
    if (poll(both.data(), both.size(), kTurnMilliseconds) < 0 && errno != EINTR)
      return end(std::generic_category().message(errno));
    const int outcome = handle(both[0].revents);
    if (outcome != MOSQ_ERR_SUCCESS) end(reason_of(outcome));
  }

  int handle(short events) {
    int outcome = MOSQ_ERR_SUCCESS;
    if (sets_up_tls_) {
      reached_ = reached_ || events != 0;
      if (events != 0) outcome = mosquitto_loop_read(handle_.get(), 1);
      if (events != 0 && outcome == MOSQ_ERR_SUCCESS) outcome = mosquitto_loop_write(handle_.get(), 1);
    } else {
      if ((events & POLLOUT) != 0) outcome = mosquitto_loop_write(handle_.get(), 1);
      if (outcome == MOSQ_ERR_SUCCESS && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        outcome = mosquitto_loop_read(handle_.get(), 1);
    }
    // What TLS has decrypted already does not show at the socket.
    while (outcome == MOSQ_ERR_SUCCESS && has_decrypted()) outcome = mosquitto_loop_read(handle_.get(), 1);
    if (outcome == MOSQ_ERR_SUCCESS) outcome = mosquitto_loop_misc(handle_.get());
    return outcome;
  }

  bool has_decrypted() const {
    const auto* tls = static_cast<const SSL*>(mosquitto_ssl_get(handle_.get()));
    return tls != nullptr && SSL_pending(tls) > 0;
  }

  void on_connect(int code) {
    if (code != 0) return end(fmt::format("the broker refuses: {}", mosquitto_connack_string(code)));
    sets_up_tls_ = false;
    session_.change([](State& state) { state.connected = true; });
    for (const auto& one : session_.settings_.topics) {
      int message = 0;
      const int outcome = mosquitto_subscribe(handle_.get(), &message, one.topic.c_str(), one.qos);
      if (outcome != MOSQ_ERR_SUCCESS) return end(words_of(outcome));
      waiting_.emplace(message, one.topic);
    }
    if (waiting_.empty()) ready();
  }

  void on_subscribe(int message, int granted) {
    const auto found = waiting_.find(message);
    if (found == waiting_.end()) return;
    if (granted >= kRefusedTopic) return end(fmt::format("the broker refuses the topic '{}'", found->second));
    waiting_.erase(found);
    if (waiting_.empty()) ready();
  }

  void ready() {
    session_.monitor_->subscribed(this_moment());
    session_.change([](State& state) { state.subscribed = true; });
  }

  /// The first reason is the one.
  void end(std::string why) {
    if (std::exchange(over_, true)) return;
    session_.change([&](State& state) { state = {.over = true, .error = std::move(why)}; });
  }

  MqttSession& session_;
  std::unique_ptr<mosquitto, FreeHandle> handle_;
  std::map<int, std::string> waiting_;  ///< topics whose subscription is not answered yet
  std::string last_error_{};            ///< of the library's log
  bool sets_up_tls_ = session_.settings_.tls.has_value();
  bool reached_ = false;  ///< the broker's address has accepted the connection
  bool over_ = false;
};

MqttSession::MqttSession(MqttSettings settings, std::shared_ptr<MessageMonitor> monitor)
    : settings_(std::move(settings)), monitor_(std::move(monitor)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { Pump(*this).run(stop); });
}

MqttSession::~MqttSession() {
  thread_.request_stop();
  thread_.join();
}

template <class Change>
void MqttSession::change(Change apply) {
  const std::lock_guard lock(mutex_);
  apply(state_);
  changed_.notify_all();
}

Result<void> MqttSession::wait_ready(const std::stop_token& stop, Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, limit, [&] { return state_.subscribed || state_.over; });
  const auto where = fmt::format("{}:{}", settings_.address.host, settings_.address.port);
  if (state_.subscribed) return {};
  if (state_.over)
    return fail(Code::unreachable, fmt::format("no connection to {}: {}", where, state_.error));
  if (stop.stop_requested())
    return fail(Code::cancelled, fmt::format("stopped while connecting to {}", where));
  return fail(Code::timed_out, fmt::format("{} does not answer within {}", where, to_string(limit)));
}

MqttSession::State MqttSession::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace pawl::workers
