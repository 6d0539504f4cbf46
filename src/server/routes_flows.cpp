// SPDX-License-Identifier: Apache-2.0
// /v1/flows: what there is, and the start of runs.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "pawl/names.hpp"
#include "server/flow_requests.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

Result<http::Response> list_flows(const Engine& engine, const Flows& flows) {
  const auto counts = engine.counts();
  JsonWriter out;
  out.begin_object().key("flows").begin_array();
  for (const auto* flow : flows.flows()) write_flow(out, *flow, counts.at(flow->name));
  out.end_array().end_object();
  return http::json(out.take());
}

Result<std::optional<RunRef>> run_ref(const Body& body, std::string_view name) {
  PAWL_TRY(const auto inner, body.inner(name, {"flow", "id"}));
  if (!inner) return std::nullopt;
  RunRef ref;
  PAWL_TRY(ref.flow, inner->text("flow"));
  PAWL_TRY(ref.id, inner->text("id"));
  return ref;
}

struct Start {
  std::string flow;
  std::string request;
  RunOptions options;
  std::optional<Duration> wait;
};

Result<std::int32_t> priority_of(const Body& body) {
  using Limits = std::numeric_limits<std::int32_t>;
  PAWL_TRY(const auto given, body.integer("priority"));
  const auto priority = given.value_or(0);
  if (priority >= Limits::min() && priority <= Limits::max()) return static_cast<std::int32_t>(priority);
  return fail(Code::invalid_argument, fmt::format("$.priority is a number from {} to {}, not {}",
                                                  Limits::min(), Limits::max(), priority));
}

Result<Start> parse_start(const Flows& flows, const http::Request& request) {
  Start start;
  PAWL_TRY(const auto* flow, find_flow(flows, request));
  start.flow = flow->name;
  PAWL_TRY(const auto body, Body::parse(request, {"request", "id", "queue", "priority", "delay", "after",
                                                  "on", "parent", "from"}));
  PAWL_TRY(start.request, body.object("request"));
  auto& options = start.options;
  PAWL_TRY(options.id, body.text_or("id", ""));
  PAWL_TRY(options.request_id, request_id(request));
  PAWL_TRY(options.queue, body.text_or("queue", ""));
  PAWL_TRY(options.priority, priority_of(body));
  PAWL_TRY(options.delay, body.duration("delay"));
  PAWL_TRY(options.after, run_ref(body, "after"));
  PAWL_TRY(options.parent, run_ref(body, "parent"));
  PAWL_TRY(options.from, body.text_or("from", ""));
  PAWL_TRY(const auto on, body.text_or("on", "success"));
  const auto when = enum_value<RunAfter>(on);
  if (!when) {
    return fail(Code::invalid_argument,
                fmt::format("$.on is success, always or failure, not \"{}\"", on.substr(0, 64)));
  }
  options.on = *when;
  PAWL_TRY(const auto wait, duration_parameter(request, "wait"));
  if (wait) {
    PAWL_TRY(start.wait, check_wait(*wait, "the parameter \"wait\""));
  }
  return start;
}

/// Such a start may block, because the upstream run may have to be loaded. A body without the name cannot
/// have the field, unless an escape hides it, and is not parsed twice.
bool comes_after_another(const http::Request& request) {
  if (!request.body.contains("after") && !request.body.contains('\\')) return false;
  const auto document = JsonDocument::parse(request.body, {.bytes = request.body.size()});
  return document && document->root().kind() == JsonKind::object &&
         document->root().find("after").has_value();
}

/// Answers with a started run: now, or when it has ended or the timeout has passed.
void answer_start(Flows& flows, Run run, std::optional<Duration> wait, http::Role role, http::Reply reply) {
  const int status = run.attached ? 200 : 201;
  if (!wait || run.finished) return reply(later(status, std::move(run), run_writer(flows, role)));
  const auto flow = run.flow;
  const auto id = run.id;
  flows.wait(
      flow, id, wait,
      [&flows, status, role, run = std::move(run), reply = std::move(reply)](Result<Run> ended) mutable {
        if (ended) {
          ended->attached = run.attached;
          return reply(later(200, *std::move(ended), run_writer(flows, role)));
        }
        if (ended.error().code() != Code::timed_out) return reply(fail(std::move(ended).error()));
        auto present = flows.get(run.flow, run.id);
        if (!present) return reply(fail(std::move(present).error()));
        present->attached = run.attached;
        reply(later(status, *std::move(present), run_writer(flows, role)));
      });
}

void start_run(Flows& flows, Waits& waits, const http::Request& request, http::Reply reply) {
  auto start = parse_start(flows, request);
  if (!start) return reply(fail(std::move(start).error()));
  if (start->wait) reply = waits.hold(std::move(reply));
  flows.start(
      start->flow, std::move(start->request), std::move(start->options),
      [&flows, wait = start->wait, role = request.role, reply = std::move(reply)](Result<Run> run) mutable {
        if (!run) return reply(fail(std::move(run).error()));
        answer_start(flows, *std::move(run), wait, role, std::move(reply));
      });
}

}  // namespace

std::vector<http::Route> flow_routes(Engine& engine, Flows& flows, Waits& waits) {
  return {
      {.path = "/v1/flows",
       .id = "list_flows",
       .summary = "All flows with their steps and the number of runs in each state",
       .response = schema_ref("Flows"),
       .run_fast = [&engine, &flows](const http::Request&) { return list_flows(engine, flows); }},
      {.method = http::Method::post,
       .path = "/v1/flows/{flow}/runs",
       .id = "start_run",
       .summary =
           "Start a run; answered once it is durable. 200 where a run of this id was found unfinished, "
           "where the request was a repeat, or where the run was waited for to its end",
       .role = http::Role::operator_,
       .query = {{.name = "wait",
                  .description = "answer only when the run has ended or this time is over, such as 10s; "
                                 "at most 600s"}},
       .request = schema_ref("RunStart"),
       .response = schema_ref("Run"),
       .success = 201,
       .other_success = 200,
       .errors = {Code::unknown_machine, Code::unknown_instance, Code::unknown_pool, Code::invalid_argument,
                  Code::missing_field, Code::request_id_reused},
       .takes_request_id = true,
       .may_block = comes_after_another,
       .run_async = [&flows, &waits](
                        const http::Request& request,
                        http::Reply reply) { start_run(flows, waits, request, std::move(reply)); }},
  };
}

}  // namespace pawl::server
