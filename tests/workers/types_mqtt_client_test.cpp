// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mosquitto.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "pawl/codec.hpp"
#include "tests/workers/types_servers.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/mqtt_client.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

constexpr const char* kBroker = "/usr/sbin/mosquitto";

#define PAWL_NEEDS_MOSQUITTO() \
  if (!std::filesystem::exists(kBroker)) GTEST_SKIP() << "mosquitto is not installed"

/// A mosquitto of its own, on loopback, that keeps nothing.
class Broker {
 public:
  /// Settings of files below its place begin with `@`.
  explicit Broker(std::string settings = "allow_anonymous true\n",
                  const std::function<void(const TemporaryDirectory&)>& prepare = {})
      : port_(free_port()) {
    if (prepare) prepare(place_);
    for (auto at = settings.find('@'); at != std::string::npos; at = settings.find('@'))
      settings.replace(at, 1, place_.path().string() + "/");
    config_ = place_.write("broker.conf",
                           fmt::format("listener {} 127.0.0.1\npersistence false\n{}", port_, settings));
    std::filesystem::permissions(place_.path(), std::filesystem::perms::all);  // it gives up being root
    start();
  }
  void start() {
    program_.emplace(std::vector<std::string>{kBroker, "-c", config_}, place_.path() / "log");
    if (!eventually([&] { return accepts(port_); })) throw std::runtime_error("no broker");
  }
  void kill() { program_->kill(); }
  std::uint16_t port() const { return port_; }
  const TemporaryDirectory& place() const { return place_; }
  MqttDesired desired() const {
    return {.url = fmt::format("mqtt://127.0.0.1:{}", port_), .topics = {{.topic = "plant/#", .qos = 1}}};
  }

 private:
  TemporaryDirectory place_;
  std::uint16_t port_;
  std::string config_;
  std::optional<Program> program_;
};

/// Somebody else at the broker.
class Publisher {
 public:
  explicit Publisher(const Broker& broker) : handle_(mosquitto_new(nullptr, true, this)) {
    mosquitto_publish_callback_set(
        handle_, [](mosquitto*, void* self, int) { static_cast<Publisher*>(self)->taken_ = true; });
    if (mosquitto_connect(handle_, "127.0.0.1", broker.port(), 30) != MOSQ_ERR_SUCCESS)
      throw std::runtime_error("the publisher cannot connect");
  }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  ~Publisher() {
    mosquitto_disconnect(handle_);
    mosquitto_destroy(handle_);
  }
  /// Returns when the broker has taken it.
  void publish(bool retain = false) {
    taken_ = false;
    EXPECT_EQ(mosquitto_publish(handle_, nullptr, "plant/a", 2, "hi", 1, retain), MOSQ_ERR_SUCCESS);
    while (!taken_) ASSERT_EQ(mosquitto_loop(handle_, 1000, 1), MOSQ_ERR_SUCCESS);
  }

 private:
  mosquitto* handle_;
  bool taken_ = false;
};

Result<void> connect(MqttTools& tools, const MqttDesired& desired, std::stop_token stop = {}) {
  return MqttClient::Connect::run(tools, desired, action_context(std::move(stop)));
}

MqttObserved look(MqttTools& tools, const MqttDesired& desired) {
  return MqttClient::collect(tools, desired, collect_context({})).value();
}

TEST(MqttClient, ConnectsNoticesSilenceAndLossAndDisconnectsBeforeItRests) {
  Table<MqttClient> table;
  const MqttDesired desired{.url = "mqtt://h", .topics = {{.topic = "a"}}, .expect_every = 1s};
  const auto settings = MqttClient::settings_of(desired);
  const MqttObserved nothing{};
  const MqttObserved halfway{.connected = true, .settings = settings};
  const MqttObserved silent{.connected = true, .subscribed = true, .listening = true, .settings = settings};
  auto receiving = silent;
  receiving.receiving = true;
  auto elsewhere = receiving;
  elsewhere.settings = "other";
  const MqttObserved lost{.listening = true, .error = "gone", .settings = settings};

  EXPECT_EQ(table.next<MqttClient::Stopped>(nothing, desired), "go TryingToConnect");
  EXPECT_EQ(table.next<MqttClient::TryingToConnect>(nothing, desired), "do Connect");
  EXPECT_EQ(table.next<MqttClient::TryingToConnect>(halfway, desired), "do Connect");
  EXPECT_EQ(table.next<MqttClient::TryingToConnect>(elsewhere, desired), "do Connect");
  EXPECT_EQ(table.next<MqttClient::TryingToConnect>(silent, desired), "go Connected");
  EXPECT_EQ(table.next<MqttClient::Connected>(receiving, desired), "stay");
  EXPECT_EQ(table.next<MqttClient::Connected>(silent, desired), "go Silent");
  EXPECT_EQ(table.next<MqttClient::Connected>(elsewhere, desired), "go TryingToConnect");
  EXPECT_EQ(table.next<MqttClient::Connected>(lost, desired), "go TryingToConnect");
  EXPECT_EQ(table.reason(), "the connection is lost: gone");
  EXPECT_EQ(table.next<MqttClient::Silent>(silent, desired), "stay");
  EXPECT_EQ(table.next<MqttClient::Silent>(receiving, desired), "go Connected");
  EXPECT_EQ(table.next<MqttClient::Silent>(elsewhere, desired), "go TryingToConnect");
  EXPECT_EQ(table.next<MqttClient::Silent>(lost, desired), "go TryingToConnect");
  EXPECT_EQ(table.next<MqttClient::TryingToDisconnect>(halfway, desired), "do Disconnect");
  EXPECT_EQ(table.next<MqttClient::TryingToDisconnect>(lost, desired), "do Disconnect");
  EXPECT_EQ(table.next<MqttClient::TryingToDisconnect>(nothing, desired), "go Stopped");
  EXPECT_EQ(table.stop<MqttClient::TryingToConnect>({}, desired), "go TryingToDisconnect");
  EXPECT_EQ(table.stop<MqttClient::Connected>({}, desired), "go TryingToDisconnect");
  EXPECT_EQ(table.stop<MqttClient::Silent>({}, desired), "go TryingToDisconnect");
  EXPECT_EQ(table.never_given(), "");
}

TEST(MqttClient, DoesNotMindSilenceWhereNothingIsExpected) {
  Table<MqttClient> table;
  const MqttDesired desired{.url = "mqtt://h"};
  const MqttObserved silent{
      .connected = true, .subscribed = true, .settings = MqttClient::settings_of(desired)};
  EXPECT_EQ(table.next<MqttClient::Connected>(silent, desired), "stay");
  EXPECT_EQ(table.next<MqttClient::Silent>(silent, desired), "go Connected");
}

TEST(MqttClient, ReceivesFromARealBroker) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker;
  auto desired = broker.desired();
  desired.expect_every = 1h;
  MqttTools tools;
  EXPECT_FALSE(look(tools, desired).connected);
  for (int again = 0; again < 3; ++again) {
    const auto connected = connect(tools, desired);
    ASSERT_TRUE(connected) << connected.error().to_string();
  }
  auto seen = look(tools, desired);
  EXPECT_TRUE(seen.connected);
  EXPECT_TRUE(seen.subscribed);
  EXPECT_EQ(seen.rate, Rate::none);
  EXPECT_EQ(seen.settings, MqttClient::settings_of(desired));

  Publisher(broker).publish();
  EXPECT_TRUE(eventually([&] { return look(tools, desired).rate != Rate::none; }));
  EXPECT_TRUE(look(tools, desired).receiving);
  for (int again = 0; again < 3; ++again)
    EXPECT_TRUE(MqttClient::Disconnect::run(tools, desired, action_context()));
  seen = look(tools, desired);
  EXPECT_FALSE(seen.connected);
  EXPECT_FALSE(seen.listening);
  EXPECT_EQ(seen.gaps, 0U);
}

TEST(MqttClient, NoticesTheDeathOfTheBrokerComesBackAndReportsTheGap) {
  PAWL_NEEDS_MOSQUITTO();
  Broker broker;
  auto desired = broker.desired();
  desired.expect_every = 1s;
  MqttTools tools;
  ASSERT_TRUE(connect(tools, desired));
  Publisher(broker).publish();
  EXPECT_TRUE(eventually([&] { return look(tools, desired).rate != Rate::none; }));

  broker.kill();
  EXPECT_TRUE(eventually([&] { return !look(tools, desired).connected; }));
  const auto lost = look(tools, desired);
  EXPECT_FALSE(lost.subscribed);
  EXPECT_FALSE(lost.receiving);
  EXPECT_NE(lost.error, "");
  EXPECT_EQ(connect(tools, desired).error().code(), Code::unreachable);
  EXPECT_TRUE(eventually([&] { return look(tools, desired).gaps == 1; }));
  EXPECT_EQ(look(tools, desired).last_gap->lasted, std::nullopt);

  broker.start();
  const auto connected = connect(tools, desired);
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(look(tools, desired).error, "");
  Publisher publisher(broker);
  MqttObserved seen;
  EXPECT_TRUE(eventually([&] {
    publisher.publish();
    seen = look(tools, desired);
    return seen.receiving && seen.last_gap->lasted.has_value();
  }));
  EXPECT_GE(seen.last_gap->lasted, 1s);
  EXPECT_GE(seen.gaps, 1U);
}

TEST(MqttClient, DoesNotTakeWhatTheBrokerHadKeptForAMessage) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker;
  Publisher publisher(broker);
  publisher.publish(true);
  auto desired = broker.desired();
  desired.topics = {{.topic = "quiet"}};
  MqttTools tools;
  ASSERT_TRUE(connect(tools, desired));
  // What is kept comes after the answer to its own subscription and before the answer to the next.
  desired.topics = {{.topic = "plant/#"}, {.topic = "quiet"}};
  ASSERT_TRUE(connect(tools, desired));
  EXPECT_EQ(look(tools, desired).rate, Rate::none);
  publisher.publish(false);
  EXPECT_TRUE(eventually([&] { return look(tools, desired).rate != Rate::none; }));
}

TEST(MqttClient, ConnectsAnewWithOtherSettings) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker;
  const auto desired = broker.desired();
  auto other = desired;
  other.client_id = "another";
  EXPECT_NE(MqttClient::settings_of(desired), MqttClient::settings_of(other));
  MqttTools tools;
  ASSERT_TRUE(connect(tools, desired));
  ASSERT_TRUE(connect(tools, other));
  EXPECT_TRUE(look(tools, other).subscribed);
  EXPECT_EQ(look(tools, other).settings, MqttClient::settings_of(other));
}

TEST(MqttClient, ReadsThePasswordFromItsFileAndNeverSaysIt) {
  PAWL_NEEDS_MOSQUITTO();
  const TemporaryDirectory secrets;
  const auto users = secrets.write("users", "pawl:swordfish\n");
  std::filesystem::permissions(secrets.path(), std::filesystem::perms::all);
  Program hasher({"/usr/bin/mosquitto_passwd", "-U", users}, secrets.path() / "log");
  ASSERT_TRUE(eventually([&] {
    std::string text(1000, '\0');
    std::ifstream(users).read(text.data(), 1000);
    return text.starts_with("pawl:$");
  }));
  const Broker broker(fmt::format("allow_anonymous false\npassword_file {}\n", users));
  auto desired = broker.desired();
  desired.username = "pawl";
  MqttTools tools;

  desired.password_file = secrets.write("wrong", "sharkfish\n");
  const auto refused = connect(tools, desired);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unreachable);
  EXPECT_NE(refused.error().message().find("the broker refuses"), std::string::npos)
      << refused.error().message();
  const auto shown =
      refused.error().to_string() + encode(look(tools, desired)).value() + encode(desired).value();
  EXPECT_EQ(shown.find("sharkfish"), std::string::npos);

  desired.password_file = secrets.write("right", "swordfish\n");
  const auto connected = connect(tools, desired);
  EXPECT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(encode(look(tools, desired)).value().find("swordfish"), std::string::npos);

  desired.password_file = secrets.path() / "none";
  EXPECT_EQ(connect(tools, desired).error().code(), Code::invalid_argument);
}

/// Runs a program to its end, which must be good.
void run(const TemporaryDirectory& place, const std::string& command) {
  const auto done = place.path() / "done";
  Program shell({"/bin/sh", "-c", fmt::format("cd {} && {} && touch done", place.path().string(), command)},
                place.path() / "openssl.log");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(done); })) << command;
  std::filesystem::remove(done);
}

/// An authority and what it has signed: the broker, and a client.
void make_certificates(const TemporaryDirectory& place) {
  run(place,
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem "
      "-subj /CN=authority -days 2");
  for (const std::string name : {"broker", "client"}) {
    run(place,
        fmt::format("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {0}.key "
                    "-out {0}.csr -subj /CN={0} && echo subjectAltName=IP:127.0.0.1 > {0}.ext && "
                    "openssl x509 -req -in {0}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {0}.pem "
                    "-days 2 -extfile {0}.ext && chmod a+r {0}.key",
                    name));
  }
}

MqttDesired over_tls(const Broker& broker, const TemporaryDirectory& certificates) {
  auto desired = broker.desired();
  desired.url = fmt::format("mqtts://127.0.0.1:{}", broker.port());
  desired.tls = {.ca_file = certificates.path() / "ca.pem"};
  return desired;
}

constexpr const char* kTlsSettings =
    "allow_anonymous true\ncafile @ca.pem\ncertfile @broker.pem\nkeyfile @broker.key\n";

TEST(MqttClient, ConnectsOverTlsToABrokerWhoseAuthorityItKnows) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker(kTlsSettings, make_certificates);
  const auto desired = over_tls(broker, broker.place());
  MqttTools tools;
  const auto connected = connect(tools, desired);
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_TRUE(look(tools, desired).subscribed);
  EXPECT_TRUE(MqttClient::Disconnect::run(tools, desired, action_context()));
}

TEST(MqttClient, RefusesABrokerOfAnotherAuthorityAndSaysWhy) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker(kTlsSettings, make_certificates);
  const TemporaryDirectory others;
  make_certificates(others);
  MqttTools tools;
  const auto refused = connect(tools, over_tls(broker, others));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unreachable);
  EXPECT_NE(refused.error().message().find("certificate verify failed"), std::string::npos)
      << refused.error().message();
  auto trusted = over_tls(broker, others);
  trusted.tls.reset();  // nor does the system trust it
  EXPECT_EQ(connect(tools, trusted).error().code(), Code::unreachable);
}

TEST(MqttClient, ShowsItsCertificateToABrokerThatAsksForIt) {
  PAWL_NEEDS_MOSQUITTO();
  const Broker broker(std::string(kTlsSettings) + "require_certificate true\n", make_certificates);
  auto desired = over_tls(broker, broker.place());
  MqttTools tools;
  EXPECT_EQ(connect(tools, desired).error().code(), Code::unreachable);
  desired.tls->certificate = broker.place().path() / "client.pem";
  desired.tls->key = broker.place().path() / "client.key";
  const auto connected = connect(tools, desired);
  EXPECT_TRUE(connected) << connected.error().to_string();
  desired.tls->key = broker.place().path() / "none.key";
  const auto missing = connect(tools, desired);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("none.key"), std::string::npos) << missing.error().message();
}

TEST(MqttClient, IsStoppedWhileItConnects) {
  const Listener silent;
  const MqttDesired desired{.url = "tcp://" + silent.address()};
  MqttTools tools;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const auto cancelled = connect(tools, desired, stop.get_token());
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), Code::cancelled);
  EXPECT_FALSE(look(tools, desired).connected);
}

TEST(MqttClient, RefusesAConfigurationThatCannotBeMeant) {
  const auto refused = [](const MqttDesired& desired) {
    return std::string(MqttClient::derive(desired).error().field("field"));
  };
  EXPECT_TRUE(MqttClient::derive({.url = "mqtt://h", .topics = {{.topic = "a/+/#"}}, .expect_every = 1s}));
  EXPECT_EQ(refused({.url = "http://h"}), "url");
  EXPECT_EQ(refused({.url = "mqtt://h", .topics = {{.topic = "a/#/b"}}}), "topics");
  EXPECT_EQ(refused({.url = "mqtt://h", .topics = {{.topic = ""}}}), "topics");
  EXPECT_EQ(refused({.url = "mqtt://h", .topics = {{.topic = "a", .qos = 3}}}), "topics");
  EXPECT_EQ(refused({.url = "mqtt://h", .expect_every = 1s}), "topics");
  EXPECT_EQ(refused({.url = "mqtt://h", .client_id = std::string(300, 'x')}), "client_id");
  EXPECT_EQ(refused({.url = "mqtt://h", .password_file = "/f"}), "username");
  EXPECT_EQ(refused({.url = "mqtt://h", .tls = MqttTls{}}), "url");
  EXPECT_EQ(refused({.url = "mqtts://h", .tls = MqttTls{.certificate = "/c"}}), "tls");
  EXPECT_TRUE(MqttClient::derive({.url = "mqtts://h"}));
  EXPECT_EQ(refused({.url = "mqtt://h", .keepalive = 4s}), "keepalive");
  EXPECT_EQ(refused({.url = "mqtt://h", .keepalive = 5500ms}), "keepalive");
  EXPECT_EQ(refused({.url = "mqtt://h", .topics = {{.topic = "a"}}, .expect_every = 0s}), "expect_every");
  EXPECT_EQ(MqttClient::derive({.url = "mqtt://h:0"}).error().code(), Code::spec_invalid);
}

TEST(MqttClient, NeverSaysAPasswordThatIsInItsAddress) {
  const auto error = MqttClient::derive({.url = "mqtt://me:secret@h"}).error();
  EXPECT_EQ(error.field("field"), "url");
  EXPECT_EQ(error.to_string().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace pawl::test
