// SPDX-License-Identifier: Apache-2.0
// /v1/runs and /v1/flows/{flow}/runs/{id}: read, wait for and control runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "pawl/names.hpp"
#include "server/flow_requests.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostRuns = 1000;
constexpr Duration kUsualWait = std::chrono::seconds(30);

Result<RunQuery> run_query(const Flows& flows, const http::Request& request) {
  RunQuery query{.state = request.parameter("state"),
                 .queue = request.parameter("queue"),
                 .cursor = request.parameter("cursor")};
  if (!request.parameter("flow").empty()) {
    PAWL_TRY(const auto* flow, find_flow(flows, request));
    query.flow = flow->name;
  }
  if (!query.state.empty() && !enum_value<RunState>(query.state)) {
    std::vector<std::string_view> known;
    for (const auto state : enum_values<RunState>) known.push_back(enum_name(state));
    return fail(Code::unknown_state, fmt::format("a run has no state \"{}\"; it has {}",
                                                 query.state.substr(0, 64), fmt::join(known, ", ")));
  }
  PAWL_TRY(query.finished, boolean_parameter(request, "finished"));
  PAWL_TRY(query.newest_first, newest_first_parameter(request));
  PAWL_TRY(query.limit, limit_parameter(request, 100, kMostRuns));
  return query;
}

Result<http::Response> list_runs(const Flows& flows, const http::Request& request) {
  PAWL_TRY(const auto query, run_query(flows, request));
  PAWL_TRY(const auto page, flows.list(query));
  JsonWriter out;
  out.begin_object().key("runs").begin_array();
  for (const auto& run : page.runs) write_run(out, run, sees_runs(request.role, flows, run.flow));
  out.end_array();
  if (!page.next.empty()) out.key("next").string(page.next);
  out.end_object();
  return http::json(out.take());
}

Result<http::Response> find_run(const Flows& flows, const http::Request& request) {
  PAWL_TRY(const auto run, flows.find(request.parameter("run")));
  return run_response(run, flows, request.role);
}

Result<http::Response> get_run(const Flows& flows, const http::Request& request) {
  PAWL_TRY(const auto* flow, find_flow(flows, request));
  PAWL_TRY(const auto run, flows.get(flow->name, request.parameter("id")));
  return run_response(run, flows, request.role);
}

Result<http::Response> get_timeline(const Flows& flows, const http::Request& request) {
  PAWL_TRY(const auto* flow, find_flow(flows, request));
  PAWL_TRY(const auto timeline, flows.timeline(flow->name, request.parameter("id")));
  JsonWriter out;
  out.begin_object().key("run");
  const bool visible = sees_runs(request.role, flows, flow->name);
  write_run(out, timeline.run, visible);
  out.key("spans").begin_array();
  for (const auto& span : timeline.spans) write_span(out, span, visible);
  out.end_array().key("truncated").boolean(timeline.truncated).end_object();
  return http::json(out.take());
}

void wait_run(const Flows& flows, Waits& waits, const http::Request& request, http::Reply reply) {
  const auto asked = [&]() -> Result<std::pair<std::string, Duration>> {
    PAWL_TRY(const auto* flow, find_flow(flows, request));
    PAWL_TRY(const auto timeout, duration_parameter(request, "timeout"));
    PAWL_TRY(const auto wait, check_wait(timeout.value_or(kUsualWait), "the parameter \"timeout\""));
    return std::pair(flow->name, wait);
  }();
  if (!asked) return reply(fail(asked.error()));
  flows.wait(asked->first, request.parameter("id"), asked->second,
             [&flows, role = request.role, reply = waits.hold(std::move(reply))](Result<Run> run) mutable {
               if (!run) return reply(fail(std::move(run).error()));
               reply(later(200, *std::move(run), run_writer(flows, role)));
             });
}

/// The run to change, and the request id of the change.
struct Asked {
  std::string flow;
  std::string id;
  std::string request_id;
};
using Change = Result<Run> (*)(Flows&, const Asked&, const Body&);

Result<Run> cancel_run(Flows& flows, const Asked& asked, const Body& body) {
  PAWL_TRY(auto reason, body.text_or("reason", ""));
  return flows.cancel(asked.flow, asked.id, reason.empty() ? "asked for" : std::move(reason),
                      asked.request_id);
}
Result<Run> pause_run(Flows& flows, const Asked& asked, const Body&) {
  return flows.pause(asked.flow, asked.id, asked.request_id);
}
Result<Run> resume_run(Flows& flows, const Asked& asked, const Body&) {
  return flows.resume(asked.flow, asked.id, asked.request_id);
}
Result<Run> retry_run(Flows& flows, const Asked& asked, const Body& body) {
  PAWL_TRY(auto step, body.text_or("step", ""));
  return flows.retry(asked.flow, asked.id, std::move(step), asked.request_id);
}

/// POST …/<verb> with at most one field.
http::Route changing(Flows& flows, const std::string& verb, std::string summary, std::string schema,
                     std::string_view field, Change change) {
  return {.method = http::Method::post,
          .path = "/v1/flows/{flow}/runs/{id}/" + verb,
          .id = verb + "_run",
          .summary = std::move(summary),
          .role = http::Role::operator_,
          .request = schema_ref(schema),
          .response = schema_ref("Run"),
          .errors = {Code::unknown_machine, Code::unknown_instance, Code::finished_instance,
                     Code::illegal_event, Code::invalid_argument, Code::request_id_reused},
          .takes_request_id = true,
          .run = [&flows, field, change](const http::Request& request) -> Result<http::Response> {
            PAWL_TRY(const auto* flow, find_flow(flows, request));
            PAWL_TRY(const auto body,
                     field.empty() ? Body::parse(request, {}) : Body::parse(request, {field}));
            PAWL_TRY(auto key, request_id(request));
            const Asked asked{flow->name, request.parameter("id"), std::move(key)};
            PAWL_TRY(const auto run, change(flows, asked, body));
            return run_response(run, flows, request.role);
          }};
}

http::Route list_runs_route(Flows& flows) {
  return {
      .path = "/v1/runs",
      .id = "list_runs",
      .summary = "Runs of all flows in the order of their creation, or the newest first, page by page",
      .query = {{.name = "flow", .description = "only of this flow"},
                {.name = "state", .description = "only in this state"},
                {.name = "finished",
                 .description = "only (un)finished ones",
                 .schema = R"({"type":"boolean"})"},
                {.name = "queue",
                 .description = "only those that stand in the line of this queue, or have their place; those "
                                "that are delayed, paused or wait for another run do neither"},
                order_of_listing(),
                {.name = "cursor", .description = "`next` of the page before, in the same order"},
                {.name = "limit",
                 .description = "at most so many, from 1 to 1000; default 100",
                 .schema = R"({"type":"integer","minimum":1,"maximum":1000,"default":100})"}},
      .response = schema_ref("Runs"),
      .errors = {Code::unknown_machine, Code::unknown_state, Code::invalid_argument, Code::cursor_invalid},
      .run = [&flows](const http::Request& request) { return list_runs(flows, request); }};
}

}  // namespace

std::vector<http::Route> run_routes(Flows& flows, Waits& waits) {
  const std::string one = "/v1/flows/{flow}/runs/{id}";
  return {
      list_runs_route(flows),
      {.path = "/v1/runs/{run}",
       .id = "find_run",
       .summary = "One run by its ULID, of whatever flow",
       .response = schema_ref("Run"),
       .errors = {Code::unknown_instance, Code::invalid_argument},
       .run = [&flows](const http::Request& request) { return find_run(flows, request); }},
      {.path = one,
       .id = "get_run",
       .summary = "One run, with the progress of its step",
       .response = schema_ref("Run"),
       .errors = {Code::unknown_machine, Code::unknown_instance},
       .run = [&flows](const http::Request& request) { return get_run(flows, request); }},
      {.path = one + "/wait",
       .id = "wait_run",
       .summary = "The run once it has ended, however it ended",
       .query = {{.name = "timeout",
                  .description = "how long to wait, such as 10s; at most 600s, default 30s"}},
       .response = schema_ref("Run"),
       .errors = {Code::unknown_machine, Code::unknown_instance, Code::invalid_argument, Code::timed_out},
       .run_async = [&flows, &waits](
                        const http::Request& request,
                        http::Reply reply) { wait_run(flows, waits, request, std::move(reply)); }},
      {.path = one + "/timeline",
       .id = "get_timeline",
       .summary = "What took time in a run, from its begin",
       .response = schema_ref("RunTimeline"),
       .errors = {Code::unknown_machine, Code::unknown_instance},
       .run = [&flows](const http::Request& request) { return get_timeline(flows, request); }},
      changing(flows, "cancel", "Stop a run and undo what it has done", "RunCancel", "reason", cancel_run),
      changing(flows, "pause", "Let nothing new begin in a run; a running step may go on to its end",
               "RunPause", "", pause_run),
      changing(flows, "resume", "Let a paused run go on", "RunPause", "", resume_run),
      changing(flows, "retry",
               "Let a run go on at a step, the present one by default; a finished one is started again",
               "RunRetry", "step", retry_run),
  };
}

}  // namespace pawl::server
