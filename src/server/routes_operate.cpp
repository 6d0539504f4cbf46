// SPDX-License-Identifier: Apache-2.0
// /v1/timers, /v1/pools, /v1/stats, /v1/events, /healthz and /readyz.
#include <fmt/format.h>

#include <algorithm>

#include "pawl/json.hpp"
#include "server/body.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

constexpr std::int64_t kMostRecent = 1000;
constexpr std::size_t kScan = 1000;  // instances looked at for one page of timers

Result<http::Response> list_timers(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto page, engine.list({.machine = request.parameter("machine"),
                                         .finished = false,
                                         .cursor = request.parameter("cursor"),
                                         .limit = kScan}));
  JsonWriter out;
  out.begin_object().key("timers").begin_array();
  for (const auto& instance : page.instances) {
    for (const auto& timer : instance.timers) {
      out.begin_object().key("machine").string(instance.machine).key("key").string(instance.key);
      out.key("state").string(instance.state).key("name").string(timer.name);
      out.key("due").string(to_string(timer.due)).key("event").string(timer.event).end_object();
    }
  }
  out.end_array();
  if (!page.next.empty()) out.key("next").string(page.next);
  out.end_object();
  return http::json(out.take());
}

Result<http::Response> list_pools(const Engine& engine) {
  JsonWriter out;
  out.begin_object().key("pools").begin_array();
  for (const auto& pool : engine.pools()) {
    out.begin_object().key("name").string(pool.name).key("size").integer(std::int64_t{pool.size});
    out.key("granted").integer(std::int64_t{pool.granted});
    out.key("waiting").integer(static_cast<std::int64_t>(pool.waiting)).end_object();
  }
  out.end_array().end_object();
  return http::json(out.take());
}

Result<http::Response> resize_pool(Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"size"}));
  PAWL_TRY(const auto size, body.integer("size"));
  if (!size) return fail(Code::missing_field, "$.size: required, but absent", {{"path", "$.size"}});
  constexpr std::int64_t kMost = 1'000'000;
  if (*size < 1 || *size > kMost) {
    return fail(Code::invalid_argument, fmt::format("$.size is a number from 1 to {}, not {}", kMost, *size));
  }
  PAWL_CHECK(engine.resize_pool(request.parameter("pool"), static_cast<std::uint32_t>(*size)));
  JsonWriter out;
  out.begin_object().key("name").string(request.parameter("pool")).key("size").integer(*size).end_object();
  return http::json(out.take());
}

Result<http::Response> get_stats(const Engine& engine) {
  const auto stats = engine.stats();
  JsonWriter out;
  out.begin_object().key("transitions").integer(stats.transitions).key("commits").integer(stats.commits);
  out.key("refused").integer(stats.refused).key("conflicts").integer(stats.conflicts);
  const auto number = [&](std::string_view name, std::size_t value) {
    out.key(name).integer(static_cast<std::uint64_t>(value));
  };
  number("instances", stats.instances);
  number("queue", stats.queue);
  number("timers", stats.timers);
  number("running_work", stats.running_work);
  number("cached_bytes", stats.cached_bytes);
  out.key("last_seq").integer(stats.last_seq);
  out.key("counts").begin_object();
  for (const auto& [machine, states] : engine.counts()) {
    if (machine.starts_with(http::kPrivateMachines)) continue;
    out.key(machine).begin_object();
    for (const auto& [state, count] : states) number(state, count);
    out.end_object();
  }
  out.end_object().end_object();
  return http::json(out.take());
}

Result<http::Response> open_events(EventFeed& feed, const http::Request& request) {
  FeedFilter filter{.machine = request.parameter("machine"),
                    .key = request.parameter("key"),
                    .state = request.parameter("state"),
                    .kind = request.parameter("kind"),
                    .role = request.role};
  if (!filter.key.empty() && filter.machine.empty()) {
    return fail(Code::invalid_argument, "the parameter \"key\" needs the parameter \"machine\"");
  }
  // A browser that reconnects repeats the address and adds the header, which is the newer of the two.
  std::string cursor(request.header("Last-Event-ID"));
  if (cursor.empty()) cursor = request.parameter("after");
  PAWL_TRY(const auto recent, integer_parameter(request, "recent"));
  if (recent > kMostRecent) {
    return fail(Code::invalid_argument, fmt::format("the parameter \"recent\" is at most {}", kMostRecent));
  }
  PAWL_TRY(auto stream, recent != 0 && cursor.empty() ? feed.open_recent(std::move(filter), recent)
                                                      : feed.open(std::move(filter), cursor));
  return http::Response{.content_type = "text/event-stream",
                        .headers = {{"X-Accel-Buffering", "no"}},
                        .stream = std::move(stream)};
}

Result<http::Response> ready(const Engine& engine, const std::atomic<bool>& draining) {
  if (draining) return fail(Code::stopped, "the server is stopping");
  // A failed store returns its error to those that wait for entries.
  PAWL_TRY(auto subscription, engine.subscribe(""));
  PAWL_CHECK(subscription.next(Duration(0), 1));
  return http::Response{.body = R"({"status":"ready"})"};
}

}  // namespace

std::vector<http::Route> operating_routes(Engine& engine) {
  return {
      {.path = "/v1/timers",
       .id = "list_timers",
       .summary =
           "Timers that are set, by instance in the order of creation; a page may be empty before the last",
       .query = {{.name = "machine", .description = "only of this machine"},
                 {.name = "cursor", .description = "`next` of the page before"}},
       .response = schema_ref("Timers"),
       .errors = {Code::unknown_machine, Code::cursor_invalid},
       .run = [&engine](const http::Request& request) { return list_timers(engine, request); }},
      {.path = "/v1/pools",
       .id = "list_pools",
       .summary = "Permit pools: how many run, how many wait",
       .response = schema_ref("Pools"),
       .run_fast = [&engine](const http::Request&) { return list_pools(engine); }},
      {.method = http::Method::put,
       .path = "/v1/pools/{pool}",
       .id = "resize_pool",
       .summary = "Change the size of a permit pool until the next start",
       .role = http::Role::operator_,
       .request = schema_ref("Resizing"),
       .response = schema_ref("Resized"),
       .errors = {Code::unknown_pool, Code::invalid_argument},
       .run_fast = [&engine](const http::Request& request) { return resize_pool(engine, request); }},
      {.path = "/v1/stats",
       .id = "get_stats",
       .summary = "Counters since the start, and instances by machine and state",
       .response = schema_ref("Stats"),
       .run_fast = [&engine](const http::Request&) { return get_stats(engine); }},
  };
}

std::vector<http::Route> event_routes(EventFeed& feed) {
  return {
      {.path = "/v1/events",
       .id = "follow_events",
       .summary =
           "The log, live, as server-sent events; goes on behind the header Last-Event-ID. A reader that "
           "is too slow gets the event `end`, like every reader when the server stops",
       .query = {{.name = "machine", .description = "only of this machine"},
                 {.name = "key", .description = "only of this instance; needs machine"},
                 {.name = "state", .description = "only entries that end in this state"},
                 {.name = "kind", .description = "created, fired, recovery, work, timer or message"},
                 {.name = "after", .description = "a cursor, or begin; default: from now on"},
                 {.name = "recent",
                  .description = "without a cursor: begin with so many entries before now, as far as they "
                                 "pass the filter",
                  .schema = R"({"type":"integer","minimum":0,"maximum":1000})"}},
       .content_type = "text/event-stream",
       .errors = {Code::cursor_invalid, Code::cursor_expired, Code::invalid_argument},
       .run = [&feed](const http::Request& request) { return open_events(feed, request); }},
  };
}

std::vector<http::Route> health_routes(Engine& engine, const std::atomic<bool>& draining) {
  return {
      {.path = "/healthz",
       .id = "health",
       .summary = "Whether the process answers",
       .role = http::Role::anyone,
       .response = schema_ref("Status"),
       .run_fast = [](const http::Request&) -> Result<http::Response> {
         return http::Response{.body = R"({"status":"alive"})"};
       }},
      {.path = "/readyz",
       .id = "readiness",
       .summary = "Whether it can do its work: not while stopping, nor after the store failed",
       .role = http::Role::anyone,
       .response = schema_ref("Status"),
       .run = [&engine, &draining](const http::Request&) { return ready(engine, draining); }},
  };
}

}  // namespace pawl::server
