// SPDX-License-Identifier: Apache-2.0
#include "cli/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "cli/output.hpp"
#include "pawl/json.hpp"
#include "pawl/ulid.hpp"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostEvent = std::size_t{16} << 20;
constexpr Duration kSilence = 60s;  // four times what a server lets pass between two signs of life
constexpr int kAttempts = 4;

std::string_view text_in(const JsonValue& object, std::string_view name) {
  const auto found = object.find(name);
  return found ? found->as_string().value_or("") : "";
}

/// Adds a hint to the error if a token is missing.
Error refusal(const HttpAnswer& answer, const Url& url) {
  auto error = to_error(answer, url);
  if (error.code() == Code::unauthenticated) {
    error.with("hint", "give a token with --token-file or PAWL_TOKEN, or log in with `pawl login`");
  }
  return error;
}

}  // namespace

// Events.

Result<void> EventReader::feed(std::string_view piece) {
  rest_ += piece;
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    auto text = std::string_view(rest_).substr(begin, end - begin);
    if (text.ends_with('\r')) text.remove_suffix(1);
    line(text);
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() + open_.data.size() <= kMostEvent) return {};
  return fail(Code::answer_invalid, fmt::format("an event is larger than {} bytes", kMostEvent));
}

void EventReader::line(std::string_view text) {
  if (text.empty()) {
    if (!open_.id.empty() || !open_.data.empty()) whole_.push_back(std::exchange(open_, {}));
    return;
  }
  const auto colon = std::min(text.find(':'), text.size());
  auto value = text.substr(std::min(colon + 1, text.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  const auto name = text.substr(0, colon);
  if (name == "id") {
    open_.id = value;
  } else if (name == "event") {
    open_.type = value;
  } else if (name == "data") {
    if (!open_.data.empty()) open_.data += '\n';
    open_.data += value;
  }
}

std::optional<StreamEvent> EventReader::next() {
  if (whole_.empty()) return std::nullopt;
  auto first = std::move(whole_.front());
  whole_.pop_front();
  return first;
}

Result<std::optional<StreamEvent>> EventStream::next(Duration most) {
  if (auto event = reader_.next()) return event;
  const auto started = std::chrono::steady_clock::now();
  PAWL_TRY(const auto piece, connection_->read(most));
  if (!piece) return fail(Code::unreachable, "the server ended the stream");
  if (!piece->empty()) {
    silent_ = {};
    PAWL_CHECK(reader_.feed(*piece));
    return reader_.next();
  }
  silent_ += std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - started);
  if (silent_ < kSilence) return std::nullopt;
  return fail(Code::unreachable, "the stream has been silent for a minute");
}

// Requests.

Error to_error(const HttpAnswer& answer, const Url& url) {
  const auto document = JsonDocument::parse(answer.body);
  if (document && document->root().kind() == JsonKind::object) {
    const auto root = document->root();
    const auto codes = all_codes();
    const auto known = std::ranges::find(codes, text_in(root, "code"), &CodeInfo::name);
    if (known != codes.end()) {
      Error error(known->code, std::string(text_in(root, "detail")));
      if (const auto fields = root.find("fields"); fields && fields->kind() == JsonKind::object) {
        for (std::size_t i = 0; i < fields->size(); ++i) {
          error.with(std::string(fields->key_at(i)), std::string(fields->at(i).as_string().value_or("")));
        }
      }
      return error;
    }
  }
  return {Code::answer_invalid, fmt::format("{}: answered with status {} and no problem of a Pawl server",
                                            url.text(), answer.status)};
}

bool is_temporary(Code code) {
  return code == Code::unreachable || code == Code::stopped || code == Code::overloaded ||
         code == Code::internal || code == Code::subscriber_lagged || code == Code::answer_invalid ||
         code == Code::store_poisoned;
}

std::string request_key(const std::string& given) {
  if (!given.empty()) return given;
  std::random_device chance;
  UlidSource ids([&] { return (std::uint64_t{chance()} << 32U) | chance(); });
  return "pawl-cli-" + ids.next(std::chrono::floor<Duration>(std::chrono::system_clock::now())).to_string();
}

void Client::authorise(HttpRequest& request) const {
  if (!options_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + options_.token);
}

Result<HttpAnswer> Client::exchange(HttpRequest request) {
  authorise(request);
  const bool kept = connection_ != nullptr;
  if (!kept) {
    PAWL_TRY(connection_, Connection::open(options_.url, options_.ca, options_.limits));
  }
  auto answer = connection_->exchange(request);
  if (!answer || !answer->keep) connection_.reset();
  if (answer || !kept || request.method != "GET" || answer.error().code() != Code::unreachable) return answer;
  // The server closed an idle connection before it got the request, so repeating it is safe.
  PAWL_TRY(connection_, Connection::open(options_.url, options_.ca, options_.limits));
  answer = connection_->exchange(request);
  if (!answer || !answer->keep) connection_.reset();
  return answer;
}

Result<std::string> Client::call(HttpRequest request) {
  PAWL_TRY(auto answer, exchange(std::move(request)));
  if (answer.status >= 200 && answer.status < 300) return std::move(answer.body);
  return fail(refusal(answer, options_.url));
}

Result<std::string> Client::get(std::string target) { return call({.target = std::move(target)}); }

Result<std::string> Client::call_once(HttpRequest request, const std::string& key) {
  request.headers.emplace_back("Idempotency-Key", key);
  auto pause = 100ms;
  bool sent = false;
  for (int attempt = 1;; ++attempt) {
    auto outcome = call(request);
    if (outcome || outcome.error().code() != Code::unreachable) return outcome;
    sent = sent || !outcome.error().field("sent").empty();
    // A request that never reached the server is reported at once; a retry would only hide that it is down.
    if (!sent) return outcome;
    if (attempt == kAttempts) {
      return fail(
          std::move(outcome.error())
              .while_("the outcome is unknown")
              .with("hint",
                    fmt::format("repeat it with --idempotency-key {}; it takes effect at most once", key)));
    }
    note(fmt::format("{}; retrying with the same idempotency key", outcome.error().message()));
    std::this_thread::sleep_for(pause);
    pause *= 4;
  }
}

Result<std::unique_ptr<EventStream>> Client::follow(std::string target, const std::string& cursor) {
  HttpRequest request{.target = std::move(target), .headers = {{"Accept", "text/event-stream"}}};
  authorise(request);
  if (!cursor.empty()) request.headers.emplace_back("Last-Event-ID", cursor);
  PAWL_TRY(auto connection, Connection::open(options_.url, options_.ca, options_.limits));
  PAWL_TRY(const auto answer, connection->begin(request));
  if (answer.status != 200) return fail(refusal(answer, options_.url));
  if (!answer.content_type.starts_with("text/event-stream")) {
    return fail(Code::answer_invalid,
                fmt::format("{}: answered with {} instead of events", options_.url.text(),
                            printable(answer.content_type.substr(0, 64))));
  }
  return std::make_unique<EventStream>(std::move(connection));
}

}  // namespace pawl::cli
