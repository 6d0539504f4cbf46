// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker that keeps a subscription at an MQTT broker and says whether messages come.
///
///     {"url": "mqtt://broker.plant:1883", "client_id": "north-7", "username": "pawl",
///      "password_file": "/etc/pawl/broker", "topics": [{"topic": "umh/v1/#", "qos": 1}],
///      "keepalive": "30s", "expect_every": "10s"}
///
/// With TLS: {"url": "mqtts://broker.plant", "tls": {"ca_file": "/etc/pawl/ca.pem",
///            "certificate": "/etc/pawl/north-7.pem", "key": "/etc/pawl/north-7.key"}, …}
///
/// The password is read when it is needed and is nowhere stored, shown or logged.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/types/message_monitor.hpp"
#include "workers/types/mqtt_session.hpp"

namespace pawl::workers {

struct MqttTopic {
  Required<std::string> topic{};
  int qos = 0;
};

struct MqttDesired {
  Required<std::string> url{};  ///< mqtt://host:port, or tcp://; mqtts:// with TLS
  std::string client_id{};      ///< empty: made of the worker's path
  std::string username{};
  std::string password_file{};
  std::optional<MqttTls> tls{};  ///< for mqtts:// only
  std::vector<MqttTopic> topics{};
  Duration keepalive = std::chrono::seconds(30);
  std::optional<Duration> expect_every{};  ///< at least one message in this time
};

struct MqttObserved {
  bool connected = false;
  bool subscribed = false;
  bool listening = false;  ///< from the first subscription until it disconnects on purpose
  bool receiving = false;
  Rate rate = Rate::none;
  std::uint32_t gaps = 0;  ///< times without a message longer than expect_every, since the instance began
  std::optional<Gap> last_gap{};
  std::string error{};     ///< why the last connection ended
  std::string settings{};  ///< tells connections of different settings apart
};

/// The connection of an instance. Thread-safe.
class MqttTools {
 public:
  /// Does nothing where there is such a connection.
  Result<void> connect(const MqttDesired& desired, const ActionContext& context);
  void disconnect();
  MqttObserved observe(const MqttDesired& desired);

 private:
  std::shared_ptr<MessageMonitor> monitor_ = std::make_shared<MessageMonitor>();
  std::mutex mutex_;
  std::shared_ptr<MqttSession> session_;
  std::string settings_;
  std::string error_;
};

struct MqttClient : Worker<MqttObserved, MqttDesired, MqttTools> {
  static constexpr std::string_view kType = "mqtt_client";
  static constexpr std::array<std::string_view, 1> kConfidential = {"username"};

  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct Silent : phase::Degraded {};
  struct TryingToDisconnect : phase::Stopping {};
  /// A lost connection leads to TryingToConnect at once, with the reason; a state of its own would say no
  /// more.
  using States = pawl::States<Stopped, TryingToConnect, Connected, Silent, TryingToDisconnect>;

  /// Errors: `unreachable`, `cancelled`, `timed_out`, `invalid_argument` for the file of the password.
  struct Connect {
    static Result<void> run(MqttTools& tools, const MqttDesired& desired, const ActionContext& context);
  };
  struct Disconnect {
    static Result<void> run(MqttTools& tools, const MqttDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot& now);
  static Next<Go<Connected>, Do<Connect>> next(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToConnect>, Go<Silent>, Stay> next(Connected, const Snapshot& now);
  static Next<Go<TryingToConnect>, Go<Connected>, Stay> next(Silent, const Snapshot& now);
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToDisconnect, const Snapshot& now);
  static Next<Go<TryingToDisconnect>> stop(TryingToConnect, const Snapshot& now);
  static Next<Go<TryingToDisconnect>> stop(Connected, const Snapshot& now);
  static Next<Go<TryingToDisconnect>> stop(Silent, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<MqttDesired> derive(MqttDesired read);
  static Result<MqttObserved> collect(MqttTools& tools, const MqttDesired& desired,
                                      const CollectContext& context);
  /// What a connection made from this is known by; other words for the same settings do not matter.
  static std::string settings_of(const MqttDesired& desired);
};

void add_mqtt_client(WorkerTypes& types);

}  // namespace pawl::workers
