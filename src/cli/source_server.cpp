// SPDX-License-Identifier: Apache-2.0
// Reads from a running server, over its API.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/source.hpp"
#include "pawl/http.hpp"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

class ServerFeed final : public Feed {
 public:
  ServerFeed(Client client, std::string target, std::string cursor,
             std::function<void(const std::string&)> notice)
      : client_(std::move(client)),
        target_(std::move(target)),
        cursor_(std::move(cursor)),
        notice_(std::move(notice)) {}

  Result<void> open() {
    // The stream takes "begin" from the address; behind the first entry the cursor is the newer of the two.
    const bool begin = cursor_ == "begin";
    const auto target =
        begin ? target_ + (target_.find('?') == std::string::npos ? "?" : "&") + "after=begin" : target_;
    PAWL_TRY(stream_, client_.follow(target, begin ? std::string() : cursor_));
    return {};
  }

  Result<std::vector<std::string>> next(Duration most) override {
    std::vector<std::string> entries;
    if (!stream_) {
      PAWL_CHECK(try_again(most));
      return entries;
    }
    auto event = stream_->next(most);
    if (!event) {
      lost(event.error().message());
      return entries;
    }
    for (auto& one = *event; one; one = stream_ ? stream_->queued() : std::nullopt) {
      PAWL_CHECK(take(*std::move(one), entries));
    }
    return entries;
  }

 private:
  static constexpr auto kFirstPause = 100ms;
  static constexpr auto kLongestPause = 5000ms;

  Result<void> take(StreamEvent event, std::vector<std::string>& entries) {
    if (!event.id.empty()) cursor_ = event.id;
    if (event.data.empty()) return {};
    if (event.type != "end") {
      entries.push_back(std::move(event.data));
      pause_ = kFirstPause;
      return {};
    }
    const auto why =
        to_error({.status = 200, .content_type = {}, .cookie = {}, .body = event.data}, client_.url());
    if (!is_temporary(why.code())) return fail(why);
    lost(why.message());
    return {};
  }

  void lost(const std::string& why) {
    stream_.reset();
    again_ = SteadyClock::now() + pause_;
    notice_(fmt::format("lost the server ({}); waiting for it", why));
  }

  Result<void> try_again(Duration most) {
    const auto left = std::chrono::duration_cast<Duration>(again_ - SteadyClock::now());
    if (left > Duration::zero()) {
      std::this_thread::sleep_for(std::min(left, most));
      if (left > most) return {};
    }
    const auto opened = open();
    if (opened) {
      notice_(cursor_.empty()
                  ? "connected again; entries of the meantime are missing, because there was no cursor yet"
                  : "connected again; continuing after the last entry");
      return {};
    }
    if (!is_temporary(opened.error().code())) return opened;
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kLongestPause);
    again_ = SteadyClock::now() + pause_;
    return {};
  }

  Client client_;
  std::string target_;
  std::string cursor_;
  std::function<void(const std::string&)> notice_;
  std::unique_ptr<EventStream> stream_;
  std::chrono::milliseconds pause_ = kFirstPause;
  SteadyClock::time_point again_;
};

class ServerSource final : public Source {
 public:
  explicit ServerSource(Client client) : client_(std::move(client)) {}

  std::string name() const override { return client_.url().text(); }
  Result<JsonDocument> machines() override { return get("/v1/machines"); }

  Result<JsonDocument> instances(const InstanceQuery& wanted) override {
    return get("/v1/instances" +
               query({{"machine", wanted.machine},
                      {"state", wanted.state},
                      {"partition", wanted.partition},
                      {"changed_after", wanted.changed_after},
                      {"changed_before", wanted.changed_before},
                      {"finished", wanted.finished ? (*wanted.finished ? "true" : "false") : ""},
                      {"cursor", wanted.cursor},
                      {"limit", std::to_string(wanted.limit)}}));
  }
  Result<JsonDocument> instance(const std::string& machine, const std::string& key) override {
    return get(fmt::format("/v1/instances/{}/{}", http::encode_percent(machine), http::encode_percent(key)));
  }
  Result<JsonDocument> history(const std::string& machine, const std::string& key, std::int64_t before,
                               std::size_t limit) override {
    return get(fmt::format("/v1/instances/{}/{}/history?before={}&limit={}", http::encode_percent(machine),
                           http::encode_percent(key), before, limit));
  }
  Result<JsonDocument> timers(const std::string& machine, const std::string& cursor) override {
    return get("/v1/timers" + query({{"machine", machine}, {"cursor", cursor}}));
  }
  Result<JsonDocument> stats() override { return get("/v1/stats"); }

  Result<std::unique_ptr<Feed>> follow(const FeedQuery& wanted,
                                       std::function<void(const std::string&)> notice) override {
    auto target = "/v1/events" + query({{"machine", wanted.machine},
                                        {"key", wanted.key},
                                        {"state", wanted.state},
                                        {"kind", wanted.kind}});
    // A connection of its own: the client's other requests go on.
    auto feed =
        std::make_unique<ServerFeed>(client_.fresh(), std::move(target), wanted.after, std::move(notice));
    PAWL_CHECK(feed->open());
    return feed;
  }

 private:
  Result<JsonDocument> get(std::string target) {
    PAWL_TRY(const auto body, client_.get(std::move(target)));
    return parse_answer(body);
  }

  Client client_;
};

}  // namespace

std::unique_ptr<Source> server_source(Client client) {
  return std::make_unique<ServerSource>(std::move(client));
}

}  // namespace pawl::cli
