// SPDX-License-Identifier: Apache-2.0
#include "workers/types/mqtt_client.hpp"

#include <fmt/format.h>
#include <mosquitto.h>

#include "workers/types/mqtt_url.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kDefaultPort = 1883;
constexpr std::uint16_t kDefaultTlsPort = 8883;
constexpr std::size_t kLongestClientId = 256;
constexpr Duration kShortestKeepalive = 5s;  // libmosquitto's
constexpr Duration kLongestKeepalive = 65535s;

bool has_other_settings(const MqttClient::Snapshot& now) {
  return now.observed.settings != MqttClient::settings_of(now.desired);
}

bool is_silent(const MqttClient::Snapshot& now) {
  return now.desired.expect_every && !now.observed.receiving;
}

Go<MqttClient::TryingToConnect> lost(const MqttClient::Snapshot& now) {
  return {fmt::format("the connection is lost: {}", now.observed.error)};
}

std::string silence(const MqttClient::Snapshot& now) {
  return fmt::format("no message within {}", to_string(*now.desired.expect_every));
}

Result<void> validate_topics(const MqttDesired& desired) {
  for (const auto& one : desired.topics) {
    if (one.topic->empty() || one.topic->find('\0') != std::string::npos ||
        mosquitto_sub_topic_check(one.topic->c_str()) != MOSQ_ERR_SUCCESS) {
      return fail(
          Code::spec_invalid,
          fmt::format("'{}' cannot be subscribed to: + and # stand for whole levels, # only at the end",
                      *one.topic),
          {{"field", "topics"}});
    }
    if (one.qos < 0 || one.qos > 2) {
      return fail(Code::spec_invalid, fmt::format("qos is {}; it is 0, 1 or 2", one.qos),
                  {{"field", "topics"}});
    }
  }
  if (desired.expect_every && desired.topics.empty()) {
    return fail(Code::spec_invalid, "expect_every needs topics: without them no message comes",
                {{"field", "topics"}});
  }
  return {};
}

Result<void> validate_tls(const MqttDesired& desired) {
  if (!desired.tls) return {};
  if (!desired.url->starts_with(kTlsScheme)) {
    return fail(Code::spec_invalid, "tls needs a url that begins with mqtts://", {{"field", "url"}});
  }
  if (desired.tls->certificate.empty() != desired.tls->key.empty()) {
    return fail(Code::spec_invalid, "tls has only one of certificate and key; they go together",
                {{"field", "tls"}});
  }
  return {};
}

}  // namespace

Result<Address> parse_mqtt_url(std::string_view url) {
  // Before anything is said about the text, which would show a password in it.
  if (url.find('@') != std::string_view::npos) {
    return fail(Code::spec_invalid, "url holds a name or a password; use username and password_file",
                {{"field", "url"}});
  }
  for (const std::string_view scheme :
       {kTlsScheme, std::string_view("mqtt://"), std::string_view("tcp://")}) {
    if (!url.starts_with(scheme)) continue;
    auto rest = url.substr(scheme.size());
    if (rest.ends_with('/')) rest.remove_suffix(1);
    return parse_address(rest, scheme == kTlsScheme ? kDefaultTlsPort : kDefaultPort);
  }
  return fail(Code::spec_invalid,
              fmt::format("url is '{}'; write mqtt://host:port, or mqtts://host:port with TLS", url),
              {{"field", "url"}});
}

Result<void> MqttClient::Connect::run(MqttTools& tools, const MqttDesired& desired,
                                      const ActionContext& context) {
  return tools.connect(desired, context);
}

Result<void> MqttClient::Disconnect::run(MqttTools& tools, const MqttDesired&, const ActionContext&) {
  tools.disconnect();
  return {};
}

Next<Go<MqttClient::TryingToConnect>> MqttClient::next(Stopped, const Snapshot&) {
  return Go<TryingToConnect>{"it should run"};
}

Next<Go<MqttClient::Connected>, Do<MqttClient::Connect>> MqttClient::next(TryingToConnect,
                                                                          const Snapshot& now) {
  if (now.observed.subscribed && !has_other_settings(now))
    return Go<Connected>{"it is connected and subscribed"};
  if (now.observed.subscribed) return Do<Connect>{"it is connected with other settings"};
  return Do<Connect>{"it is not connected yet"};
}

Next<Go<MqttClient::TryingToConnect>, Go<MqttClient::Silent>, Stay> MqttClient::next(Connected,
                                                                                     const Snapshot& now) {
  if (!now.observed.connected) return lost(now);
  if (has_other_settings(now)) return Go<TryingToConnect>{"its settings have changed"};
  if (is_silent(now)) return Go<Silent>{silence(now)};
  return Stay{"it is connected"};
}

Next<Go<MqttClient::TryingToConnect>, Go<MqttClient::Connected>, Stay> MqttClient::next(Silent,
                                                                                        const Snapshot& now) {
  if (!now.observed.connected) return lost(now);
  if (has_other_settings(now)) return Go<TryingToConnect>{"its settings have changed"};
  if (!is_silent(now)) return Go<Connected>{"messages come"};
  return Stay{silence(now)};
}

Next<Go<MqttClient::Stopped>, Do<MqttClient::Disconnect>> MqttClient::next(TryingToDisconnect,
                                                                           const Snapshot& now) {
  if (now.observed.connected) return Do<Disconnect>{"it is still connected"};
  if (now.observed.listening) return Do<Disconnect>{"it still waits for messages"};
  return Go<Stopped>{"it is disconnected"};
}

Next<Go<MqttClient::TryingToDisconnect>> MqttClient::stop(TryingToConnect, const Snapshot&) {
  return Go<TryingToDisconnect>{"it has to stop while it connects"};
}
Next<Go<MqttClient::TryingToDisconnect>> MqttClient::stop(Connected, const Snapshot&) {
  return Go<TryingToDisconnect>{"it has to stop"};
}
Next<Go<MqttClient::TryingToDisconnect>> MqttClient::stop(Silent, const Snapshot&) {
  return Go<TryingToDisconnect>{"it has to stop while no messages come"};
}

Result<MqttDesired> MqttClient::derive(MqttDesired read) {
  PAWL_CHECK(parse_mqtt_url(*read.url));
  PAWL_CHECK(validate_tls(read));
  PAWL_CHECK(validate_topics(read));
  if (read.client_id.size() > kLongestClientId) {
    return fail(Code::spec_invalid, fmt::format("client_id is longer than {}", kLongestClientId),
                {{"field", "client_id"}});
  }
  if (!read.password_file.empty() && read.username.empty()) {
    return fail(Code::spec_invalid, "password_file needs a username", {{"field", "username"}});
  }
  if (read.keepalive < kShortestKeepalive || read.keepalive > kLongestKeepalive ||
      read.keepalive % 1s != Duration::zero()) {
    return fail(Code::spec_invalid,
                fmt::format("keepalive is {}; it is {} to {} in whole seconds", to_string(read.keepalive),
                            to_string(kShortestKeepalive), to_string(kLongestKeepalive)),
                {{"field", "keepalive"}});
  }
  if (read.expect_every && *read.expect_every <= Duration::zero()) {
    return fail(Code::spec_invalid, "expect_every is not above zero; leave it out if none is expected",
                {{"field", "expect_every"}});
  }
  return read;
}

Result<MqttObserved> MqttClient::collect(MqttTools& tools, const MqttDesired& desired,
                                         const CollectContext&) {
  return tools.observe(desired);
}

std::string MqttClient::settings_of(const MqttDesired& desired) {
  constexpr std::uint64_t kOffset = 14695981039346656037U;  // FNV-1a: the same in every run of the program
  constexpr std::uint64_t kPrime = 1099511628211U;
  std::uint64_t sum = kOffset;
  const auto add = [&](std::string_view text) {
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * kPrime;
    sum *= kPrime;  // a zero byte: the end of the text
  };
  for (const auto& text : {*desired.url, desired.client_id, desired.username, desired.password_file})
    add(text);
  if (desired.tls) {
    for (const auto& text : {desired.tls->ca_file, desired.tls->certificate, desired.tls->key}) add(text);
  }
  add(to_string(desired.keepalive));
  for (const auto& one : desired.topics) {
    add(*one.topic);
    add(std::to_string(one.qos));
  }
  return fmt::format("{:016x}", sum);
}

void add_mqtt_client(WorkerTypes& types) { types.add<MqttClient>(); }

}  // namespace pawl::workers
