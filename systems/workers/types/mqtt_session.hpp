// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One connection to an MQTT broker with its subscriptions, until it is lost; then it is over, and another
/// one has to be made.
///
///     MqttSession session(settings, monitor);
///     PAWL_CHECK(session.wait_ready(stop, 10s));
///     session.state().subscribed;

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"
#include "workers/types/address.hpp"
#include "workers/types/message_monitor.hpp"

namespace pawl::workers {

struct MqttSubscription {
  std::string topic;
  int qos = 0;
};

/// Files of TLS.
struct MqttTls {
  std::string ca_file{};      ///< who signs the broker's certificate; empty: whom the system trusts
  std::string certificate{};  ///< the client's own, with its key; empty: it has none
  std::string key{};
};

struct MqttSettings {
  Address address;
  std::string client_id;
  std::string username{};
  std::string password{};  ///< in memory only
  std::optional<MqttTls> tls{};
  std::vector<MqttSubscription> topics{};
  std::chrono::seconds keepalive{30};
};

/// Thread-safe.
class MqttSession {
 public:
  struct State {
    bool connected = false;
    bool subscribed = false;  ///< to everything
    bool over = false;
    std::string error{};  ///< why it is over
  };

  /// Begins to connect. Messages, except those that the broker had kept, are told to `monitor`.
  MqttSession(MqttSettings settings, std::shared_ptr<MessageMonitor> monitor);
  MqttSession(const MqttSession&) = delete;
  MqttSession& operator=(const MqttSession&) = delete;
  /// Says goodbye to the broker and waits for the thread.
  ~MqttSession();

  /// Waits until everything is subscribed. Errors: `unreachable`, `cancelled`, `timed_out`.
  Result<void> wait_ready(const std::stop_token& stop, Duration limit);
  State state() const;

 private:
  class Pump;

  template <class Change>
  void change(Change apply);

  MqttSettings settings_;
  std::shared_ptr<MessageMonitor> monitor_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  State state_;
  /// Threads belong to the runtime. This one is the exception: the library has to be asked all the time, also
  /// if this is not called, otherwise keepalives and messages are late and the broker drops the client; there
  /// is no descriptor to hand to the runtime before the library has connected. It ends with the session.
  std::jthread thread_;
};

}  // namespace pawl::workers
