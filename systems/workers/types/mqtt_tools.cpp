// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "workers/types/mqtt_client.hpp"
#include "workers/types/mqtt_url.hpp"
#include "workers/types/services.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectWithin = 10s;

Result<std::string> read_password(const std::string& file) {
  if (file.empty()) return std::string();
  PAWL_TRY(auto text, read_small_file(file));
  if (!text)
    return fail(Code::invalid_argument, "the password_file " + file + " does not exist", {{"path", file}});
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  return *std::move(text);
}

/// The library says of a file that it cannot read no more than that something is wrong.
Result<void> check_files(const std::optional<MqttTls>& tls) {
  if (!tls) return {};
  for (const auto& path : {tls->ca_file, tls->certificate, tls->key}) {
    if (path.empty() || ::access(path.c_str(), R_OK) == 0) continue;
    return fail(Code::invalid_argument,
                fmt::format("{} cannot be read: {}", path, std::generic_category().message(errno)),
                {{"path", path}});
  }
  return {};
}

std::string client_id_of(const MqttDesired& desired, const WorkerIdentity& who) {
  if (!desired.client_id.empty()) return desired.client_id;
  auto made = "pawl-" + who.path;
  std::ranges::replace(made, '/', '-');
  return made;
}

}  // namespace

Result<void> MqttTools::connect(const MqttDesired& desired, const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it connected");
  const auto settings = MqttClient::settings_of(desired);
  PAWL_TRY(auto address, parse_mqtt_url(*desired.url));
  PAWL_TRY(auto password, read_password(desired.password_file));
  PAWL_CHECK(check_files(desired.tls));
  std::shared_ptr<MqttSession> old;
  {
    const std::lock_guard lock(mutex_);
    if (session_ && session_->state().subscribed && settings_ == settings) return {};
    old = std::move(session_);
  }
  old.reset();  // one client of this name at a time: the broker would drop the older one

  MqttSettings made{.address = std::move(address),
                    .client_id = client_id_of(desired, context.identity),
                    .username = desired.username,
                    .password = std::move(password),
                    .keepalive = std::chrono::duration_cast<std::chrono::seconds>(desired.keepalive)};
  if (desired.url->starts_with(kTlsScheme)) made.tls = desired.tls.value_or(MqttTls{});
  for (const auto& one : desired.topics) made.topics.push_back({.topic = *one.topic, .qos = one.qos});
  monitor_->expect(desired.expect_every);
  auto session = std::make_shared<MqttSession>(std::move(made), monitor_);
  {
    const std::lock_guard lock(mutex_);
    session_ = session;
    settings_ = settings;
  }
  auto ready = session->wait_ready(context.stop, kConnectWithin);
  const std::lock_guard lock(mutex_);
  error_ = ready ? "" : ready.error().message();
  if (!ready) session_.reset();
  return ready;
}

void MqttTools::disconnect() {
  std::shared_ptr<MqttSession> old;
  {
    const std::lock_guard lock(mutex_);
    old = std::move(session_);
    error_.clear();
  }
  old.reset();
  monitor_->end(this_moment());
}

MqttObserved MqttTools::observe(const MqttDesired& desired) {
  monitor_->expect(desired.expect_every);
  const auto heard = monitor_->stats(this_moment());
  MqttObserved seen{
      .listening = heard.listening, .rate = heard.rate, .gaps = heard.gaps, .last_gap = heard.last_gap};
  const std::lock_guard lock(mutex_);
  if (session_) {
    const auto state = session_->state();
    seen.connected = state.connected;
    seen.subscribed = state.subscribed;
    seen.settings = settings_;
    if (state.over) error_ = state.error;
  }
  seen.receiving = seen.subscribed && heard.receiving;
  seen.error = error_;
  return seen;
}

}  // namespace pawl::workers
