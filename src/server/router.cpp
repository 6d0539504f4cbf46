// SPDX-License-Identifier: Apache-2.0
#include "server/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <utility>

#include "kernel/suggestion.hpp"
#include "server/origin.hpp"
#include "server/problem.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostParameters = 64;
constexpr std::size_t kMostSegments = 15;  // of a route

/// Views of the parts of a path. A path with too many parts matches no route.
class Segments {
 public:
  explicit Segments(std::string_view path) {
    while (!path.empty() && count_ < parts_.size()) {
      path.remove_prefix(1);  // the slash
      const auto slash = std::min(path.find('/'), path.size());
      parts_[count_++] = path.substr(0, slash);
      path = path.substr(slash);
    }
  }
  const std::string_view* begin() const { return parts_.data(); }
  const std::string_view* end() const { return parts_.data() + count_; }
  std::size_t size() const { return count_; }

 private:
  std::array<std::string_view, kMostSegments + 1> parts_;
  std::size_t count_ = 0;
};

bool is_parameter(std::string_view segment) { return segment.starts_with('{') && segment.ends_with('}'); }

/// A parameter of the template matches one segment that is not empty.
bool fits(const std::vector<std::string>& pattern, const Segments& path) {
  return std::ranges::equal(pattern, path, [](const std::string& want, std::string_view given) {
    return is_parameter(want) ? !given.empty() : want == given;
  });
}

Error bad_escape(std::string_view where) {
  return {Code::malformed_request,
          fmt::format("the {} has a % that does not begin an escape such as %2F", where)};
}

/// The text before and after the first mark; the whole text and an empty one if there is no mark.
std::pair<std::string_view, std::string_view> split(std::string_view text, char mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

Result<void> parse_query(http::Request& request, const http::Route& route) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const auto [item, others] = split(rest, '&');
    rest = others;
    if (item.empty()) continue;
    const auto [before, behind] = split(item, '=');
    auto name = decode_percent(before, true);
    auto value = decode_percent(behind, true);
    if (!name || !value) return fail(bad_escape("query"));
    const auto known = std::ranges::find(route.query, *name, &http::Parameter::name);
    if (known == route.query.end()) {
      std::vector<std::string> names;
      for (const auto& parameter : route.query) names.push_back(parameter.name);
      return fail(Code::unknown_name,
                  fmt::format("{} {} takes no parameter \"{}\"{}", http::name(route.method), route.path,
                              name->substr(0, 64), suggestion(*name, names)));
    }
    if (request.has_parameter(*name)) {
      return fail(Code::invalid_argument, fmt::format("the parameter \"{}\" is given twice", *name));
    }
    request.parameters.emplace_back(*std::move(name), *std::move(value));
    if (request.parameters.size() > kMostParameters) {
      return fail(Code::invalid_argument, "the query has too many parameters");
    }
  }
  for (const auto& parameter : route.query) {
    if (parameter.required && !request.has_parameter(parameter.name)) {
      return fail(Code::missing_field, fmt::format("the parameter \"{}\" is missing", parameter.name));
    }
  }
  return {};
}

Result<void> check_body(const http::Request& request, const http::Route& route) {
  if (route.request.empty()) {
    if (request.body.empty()) return {};
    return fail(Code::invalid_argument,
                fmt::format("{} {} takes no body", http::name(route.method), route.path));
  }
  const auto type = request.header("Content-Type");
  const auto media = type.substr(0, type.find_first_of("; "));
  if (media == "application/json" || media.ends_with("+json")) return {};
  return fail(Code::unsupported_media_type,
              fmt::format("{} {} reads application/json, not \"{}\"", http::name(route.method), route.path,
                          media.substr(0, 64)));
}

Error thrown_by_handler(const std::exception& thrown) {
  return {Code::internal, fmt::format("a handler threw: {}", thrown.what())};
}

Result<http::Response> guarded(const http::Handler& handler, const http::Request& request) {
  try {
    return handler(request);
  } catch (const std::exception& thrown) {
    return fail(thrown_by_handler(thrown));
  }
}

/// A handler that throws may have answered already, or have passed the reply on to code that still will.
void run_guarded(const http::AsyncHandler& handler, const http::Request& request, http::Reply reply) {
  struct Once {
    explicit Once(http::Reply answer) : reply(std::move(answer)) {}
    void answer(Result<http::Response> outcome) {
      if (!answered.exchange(true)) std::exchange(reply, nullptr)(std::move(outcome));
    }
    http::Reply reply;
    std::atomic<bool> answered{false};
  };
  const auto once = std::make_shared<Once>(std::move(reply));
  try {
    handler(request, [once](Result<http::Response> outcome) { once->answer(std::move(outcome)); });
  } catch (const std::exception& thrown) {
    once->answer(fail(thrown_by_handler(thrown)));
  }
}

}  // namespace

std::optional<std::string> decode_percent(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      unsigned value = 0;
      if (i + 2 >= text.size()) return std::nullopt;
      const auto* end = text.data() + i + 3;
      if (std::from_chars(text.data() + i + 1, end, value, 16).ptr != end) return std::nullopt;
      decoded += static_cast<char>(value);
      i += 2;
    }
  }
  return decoded;
}

Result<void> check_role(const http::Request& request, const http::Route& route) {
  if (request.role >= route.role) return {};
  return fail(Code::forbidden,
              fmt::format("{} {} needs the role {}; {} has the role {}", http::name(route.method), route.path,
                          name(route.role), request.user, name(request.role)),
              {{"needs", std::string(name(route.role))}, {"role", std::string(name(request.role))}});
}

void RouteCounters::note(int status, Duration taken) {
  by_class[static_cast<std::size_t>(std::clamp(status / 100, 0, 5))].fetch_add(1, std::memory_order_relaxed);
  const auto value = std::chrono::duration<double>(taken).count();
  const auto place = std::ranges::lower_bound(kBounds, value) - kBounds.begin();
  seconds[static_cast<std::size_t>(place)].fetch_add(1, std::memory_order_relaxed);
  microseconds.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(taken.count(), 0)),
                         std::memory_order_relaxed);
}

Router::Router(Runtime& runtime, std::size_t workers, Logger log)
    : runtime_(runtime),
      log_(std::move(log)),
      workers_(
          runtime.open_thread_pool("http", {.threads = std::max<std::size_t>(workers, 1), .queue = 1024})) {
  // Shared with the last request, which may finish after the router is gone.
  const auto told = std::make_shared<std::promise<void>>();
  none_runs_ = told->get_future();
  running_ = std::shared_ptr<void>(nullptr, [told](std::nullptr_t) { told->set_value(); });
}

Router::~Router() {
  workers_.reset();
  running_.reset();
  none_runs_.wait();
}

Result<void> Router::add(http::Route route) {
  const int handlers = (route.run ? 1 : 0) + (route.run_fast ? 1 : 0) + (route.run_async ? 1 : 0);
  if (handlers != 1 || !route.path.starts_with('/')) {
    return fail(Code::invalid_argument,
                fmt::format("the route {} \"{}\" needs exactly one handler and a path that begins with /",
                            route.id, route.path));
  }
  for (const auto& entry : entries_) {
    const bool same = entry.route.method == route.method && entry.route.path == route.path;
    if (!same && entry.route.id != route.id) continue;
    return fail(Code::invalid_argument, fmt::format("the route {} ({} {}) is there already", route.id,
                                                    http::name(route.method), route.path));
  }
  const Segments parts(route.path);
  if (parts.size() > kMostSegments) {
    return fail(Code::invalid_argument,
                fmt::format("the route {} has a path of more than {} segments", route.id, kMostSegments));
  }
  std::vector<std::string> segments(parts.begin(), parts.end());
  entries_.push_back({std::move(route), std::move(segments), std::make_unique<RouteCounters>()});
  return {};
}

Result<Router::Match> Router::find(const http::Request& request) const {
  if (!request.path.starts_with('/')) {
    return fail(Code::malformed_request, "the target of the request is not a path");
  }
  const Segments path(request.path);
  const Entry* best = nullptr;
  for (const auto& entry : entries_) {
    if (entry.route.method != request.method || !fits(entry.segments, path)) continue;
    // A literal segment is better than a parameter, wherever the two routes differ first.
    if (best == nullptr || std::ranges::lexicographical_compare(entry.segments, best->segments, {},
                                                                is_parameter, is_parameter)) {
      best = &entry;
    }
  }
  if (best == nullptr) return fail(no_route(request));
  Match match{.entry = best, .parameters = {}};
  match.parameters.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::string_view want = best->segments[i];
    if (!is_parameter(want)) continue;
    auto value = decode_percent(path.begin()[i], false);
    if (!value) return fail(bad_escape("path"));
    match.parameters.emplace_back(want.substr(1, want.size() - 2), *std::move(value));
  }
  return match;
}

/// The error of a request without a route: another method exists for the path, or none.
Error Router::no_route(const http::Request& request) const {
  const Segments path(request.path);
  std::string allowed;
  for (const auto& entry : entries_) {
    if (!fits(entry.segments, path)) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += http::name(entry.route.method);
  }
  if (allowed.empty()) {
    return {Code::unknown_route, fmt::format("nothing is served at {}; /v1/openapi.json lists the paths",
                                             request.path.substr(0, 128))};
  }
  return {Code::method_not_allowed,
          fmt::format("{} takes {}", request.path.substr(0, 128), allowed),
          {{"allow", allowed}}};
}

Result<void> Router::prepare(http::Request& request, const http::Route& route) const {
  request.user = "anonymous";
  request.role = http::Role::admin;
  if (route.method != http::Method::get) PAWL_CHECK(check_same_site(request));
  if (authenticate_) PAWL_CHECK(authenticate_(request, route));
  PAWL_CHECK(check_role(request, route));
  PAWL_CHECK(parse_query(request, route));
  if (request.parameter("machine").starts_with(http::kPrivateMachines)) {
    return fail(Code::unknown_machine,
                fmt::format("no machine \"{}\" is registered", request.parameter("machine").substr(0, 64)));
  }
  return check_body(request, route);
}

void Router::handle(http::Request request, std::move_only_function<void(http::Response)> reply) {
  const auto started = runtime_.instant();
  auto match = find(request);
  if (!match) {
    if (fallback_ && request.method == http::Method::get && match.error().code() == Code::unknown_route) {
      if (auto response = fallback_(request)) {
        fallen_back_.note(response->status, runtime_.instant() - started);
        return reply(*std::move(response));
      }
    }
    auto response = to_response(match.error());
    unmatched_.note(response.status, runtime_.instant() - started);
    return reply(std::move(response));
  }
  const auto& entry = *match->entry;
  request.parameters = std::move(match->parameters);
  const auto prepared = prepare(request, entry.route);
  const auto held = std::make_shared<http::Request>(std::move(request));
  const bool audited = audit_ && entry.route.audited && entry.route.method != http::Method::get;
  auto finish = [this, &entry, ticket = running_, started, audited, held,
                 reply = std::move(reply)](Result<http::Response> outcome) mutable {
    if (!outcome && status_of(outcome.error().code()) == 500) {
      log_.error("a request failed", {{"route", entry.route.id}, {"error", outcome.error().to_string()}});
    }
    auto response = outcome ? *std::move(outcome) : to_response(outcome.error());
    if (response.stream && admit_stream_) {
      auto admitted = admit_stream_(std::move(response.stream), held, entry.route);
      if (admitted) response.stream = *std::move(admitted);
      if (!admitted) response = to_response(admitted.error());
    }
    entry.counters->note(response.status, runtime_.instant() - started);
    if (audited) audit_(*held, entry.route, response);
    reply(std::move(response));
  };
  if (!prepared) return finish(fail(prepared.error()));
  run(entry, held, std::move(finish));
}

void Router::run(const Entry& entry, const std::shared_ptr<http::Request>& request, http::Reply reply) {
  if (entry.route.run_fast) return reply(guarded(entry.route.run_fast, *request));
  const auto begin = [&entry](http::Request& asked, http::Reply answer) {
    run_guarded(entry.route.run_async, asked, std::move(answer));
    asked.body = {};  // the audit, which may be waiting for the answer, does not read it
  };
  if (entry.route.run_async && !(entry.route.may_block && entry.route.may_block(*request)))
    return begin(*request, std::move(reply));
  // A refused job is destroyed with its captures, so the answer is kept outside of it.
  const auto answer = std::make_shared<http::Reply>(std::move(reply));
  const auto submitted = workers_->submit([&entry, begin, answer, request](const std::stop_token&) {
    if (entry.route.run_async) return begin(*request, std::move(*answer));
    (*answer)(guarded(entry.route.run, *request));
  });
  if (!submitted) (*answer)(fail(submitted.error()));
}

}  // namespace pawl::server
