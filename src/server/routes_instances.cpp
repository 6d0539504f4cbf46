// SPDX-License-Identifier: Apache-2.0
// /v1/instances: look at them, begin them, send them events.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/body.hpp"
#include "server/problem.hpp"
#include "server/render.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostPage = 1000;

Result<http::Response> instance_response(const Engine& engine, const Instance& instance, http::Role role,
                                         int status) {
  const auto* definition = engine.definition(instance.machine);
  JsonWriter out;
  write_instance(out, instance, definition, role);
  PAWL_TRY(auto response, http::json(out.take(), status));
  response.headers.emplace_back("ETag", etag(instance, sees_data(role, definition)));
  if (status == 201) {
    response.headers.emplace_back("Location",
                                  fmt::format("/v1/instances/{}/{}", http::encode_percent(instance.machine),
                                              http::encode_percent(instance.key)));
  }
  return response;
}

Result<http::Response> get_instance(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto instance, engine.read(request.parameter("machine"), request.parameter("key")));
  const auto tag = etag(instance, sees_data(request.role, engine.definition(instance.machine)));
  if (request.header("If-None-Match") == tag) {
    return http::Response{.status = 304, .headers = {{"ETag", tag}}};
  }
  PAWL_TRY(auto response, instance_response(engine, instance, request.role, 200));
  response.headers.emplace_back("Cache-Control", "no-cache");
  return response;
}

Result<ListQuery> list_query(const Engine& engine, const http::Request& request) {
  ListQuery query{.machine = request.parameter("machine"),
                  .state = request.parameter("state"),
                  .prefix = request.parameter("prefix"),
                  .partition = request.parameter("partition"),
                  .cursor = request.parameter("cursor")};
  PAWL_TRY(query.limit, limit_parameter(request, 100, kMostPage));
  PAWL_TRY(query.changed_after, time_parameter(request, "changed_after"));
  PAWL_TRY(query.changed_before, time_parameter(request, "changed_before"));
  PAWL_TRY(query.finished, boolean_parameter(request, "finished"));
  PAWL_TRY(query.newest_first, newest_first_parameter(request));
  const auto* definition = engine.definition(query.machine);
  if (definition != nullptr && !query.state.empty()) PAWL_CHECK(definition->find_state(query.state));
  return query;
}

Result<http::Response> list_instances(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto query, list_query(engine, request));
  PAWL_TRY(const auto page, engine.list(query));
  JsonWriter out;
  out.begin_object().key("instances").begin_array();
  for (const auto& instance : page.instances) {
    if (instance.machine.starts_with(http::kPrivateMachines)) continue;
    write_instance(out, instance, engine.definition(instance.machine), request.role);
  }
  out.end_array();
  if (!page.next.empty()) out.key("next").string(page.next);
  out.end_object();
  return http::json(out.take());
}

Result<http::Response> get_history(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto before, integer_parameter(request, "before"));
  PAWL_TRY(const auto limit, limit_parameter(request, 100, kMostPage));
  PAWL_TRY(const auto history,
           engine.history(request.parameter("machine"), request.parameter("key"), before, limit));
  JsonWriter out;
  out.begin_object().key("events").begin_array();
  const bool visible = sees_data(request.role, engine.definition(request.parameter("machine")));
  for (const auto& event : history.events) write_event(out, event, visible);
  out.end_array().key("truncated").boolean(history.truncated);
  if (history.next != 0) out.key("next").integer(history.next);
  out.end_object();
  return http::json(out.take());
}

Result<http::Response> get_ephemerals(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto values, engine.ephemerals(request.parameter("machine"), request.parameter("key")));
  const bool visible = sees_data(request.role, engine.definition(request.parameter("machine")));
  JsonWriter out;
  out.begin_object().key("values").begin_object();
  for (const auto& [name, value] : values) {
    out.key(name);
    if (visible) {
      out.embed(value);
    } else {
      out.string(kConfidential);
    }
  }
  out.end_object();
  if (!visible) out.key("redacted").boolean(true);
  out.end_object();
  return http::json(out.take());
}

/// The engine's own thread makes the commit, never that of the connection: a disk that stalls must not hold
/// up other connections. It only passes the outcome on; that is written where it is sent.
void commit(Engine& engine, http::Role role, Transaction transaction, int status, http::Reply reply) {
  auto done = [&engine, status, role, event = transaction.operations().front().event,
               reply = std::move(reply)](Result<std::vector<Instance>> outcome) mutable {
    if (!outcome) return reply(fail(std::move(outcome).error()));
    http::Response response{.status = status};
    response.audit = {{"key", outcome->front().key}, {"seq", std::to_string(outcome->front().seq)}};
    if (!event.empty()) response.audit.emplace_back("event", std::move(event));
    response.finish = [&engine, status, role, instance = std::move(outcome->front())](http::Response& made) {
      auto written = instance_response(engine, instance, role, status);
      made = written ? *std::move(written) : to_response(written.error());
    };
    reply(std::move(response));
  };
  engine.submit(std::move(transaction), std::move(done));
}

/// Some machines are driven by one component alone, such as a flow or a supervisor: an event from elsewhere
/// would bypass it.
Result<void> check_free(const Engine& engine, const http::Request& request) {
  const auto* definition = engine.definition(request.parameter("machine"));
  if (definition == nullptr || definition->steered_by.empty()) return {};
  return fail(Code::invalid_argument,
              fmt::format("only {1} creates and changes instances of \"{0}\"", definition->name,
                          definition->steered_by),
              {{"use", definition->steered_by}});
}

/// People write this: a field that is spelled wrong must not be lost. The engine reads leniently, as it reads
/// what older releases stored; it also refuses machines and events that do not exist.
Result<void> check_fields(const Engine& engine, const Operation& operation) {
  const auto* definition = engine.definition(operation.machine);
  if (definition == nullptr) return {};
  auto check = definition->check_data;
  auto what = fmt::format("the data of a {}", definition->name);
  if (operation.kind == Operation::Kind::send) {
    const auto event = definition->find_event(operation.event);
    if (!event) return {};
    check = definition->events[*event].check_payload;
    what = fmt::format("the payload of {}", definition->events[*event].name);
  }
  if (check == nullptr) return {};
  if (auto checked = check(operation.json); !checked) return fail(std::move(checked).error().while_(what));
  return {};
}

Result<Transaction> creation(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"key", "data", "partition"}));
  Operation operation{.kind = Operation::Kind::create, .machine = request.parameter("machine"), .key = {}};
  PAWL_TRY(operation.key, body.text("key"));
  PAWL_TRY(operation.partition, body.text_or("partition", ""));
  PAWL_TRY(operation.json, body.object("data"));
  PAWL_CHECK(check_fields(engine, operation));
  PAWL_TRY(auto id, request_id(request));
  return Transaction{}.operation(std::move(operation)).request_id(std::move(id));
}

Result<Transaction> sending(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"event", "payload", "expected_version"}));
  Operation operation{.kind = Operation::Kind::send,
                      .machine = request.parameter("machine"),
                      .key = request.parameter("key")};
  PAWL_TRY(operation.event, body.text("event"));
  PAWL_TRY(operation.json, body.object("payload"));
  PAWL_CHECK(check_fields(engine, operation));
  PAWL_TRY(operation.expected_version, body.integer("expected_version"));
  PAWL_TRY(auto id, request_id(request));
  return Transaction{}.operation(std::move(operation)).request_id(std::move(id));
}

http::AsyncHandler committing(Engine& engine,
                              Result<Transaction> (*make)(const Engine&, const http::Request&), int status) {
  return [&engine, make, status](const http::Request& request, http::Reply reply) {
    if (auto free = check_free(engine, request); !free) return reply(fail(std::move(free).error()));
    auto transaction = make(engine, request);
    if (!transaction) return reply(fail(std::move(transaction).error()));
    commit(engine, request.role, *std::move(transaction), status, std::move(reply));
  };
}

http::Parameter limit_of_page() {
  return {.name = "limit",
          .description = "at most so many, from 1 to 1000; default 100",
          .schema = R"({"type":"integer","minimum":1,"maximum":1000,"default":100})"};
}

http::Route list_route(Engine& engine) {
  const auto* const time = R"({"type":"string","format":"date-time"})";
  return {
      .path = "/v1/instances",
      .id = "list_instances",
      .summary = "Instances in the order of their creation, or the newest first, page by page",
      .query = {{.name = "machine", .description = "only of this machine"},
                {.name = "state", .description = "only in this state"},
                {.name = "prefix", .description = "only keys that begin so"},
                {.name = "partition", .description = "only of this partition"},
                {.name = "finished",
                 .description = "only (un)finished ones",
                 .schema = R"({"type":"boolean"})"},
                {.name = "changed_after", .description = "changed later than this", .schema = time},
                {.name = "changed_before", .description = "changed earlier than this", .schema = time},
                order_of_listing(),
                {.name = "cursor", .description = "`next` of the page before, in the same order"},
                limit_of_page()},
      .response = schema_ref("Instances"),
      .errors = {Code::unknown_machine, Code::unknown_state, Code::invalid_argument, Code::cursor_invalid},
      .run = [&engine](const http::Request& request) { return list_instances(engine, request); }};
}

std::vector<http::Route> reading_routes(Engine& engine) {
  return {
      list_route(engine),
      {.path = "/v1/instances/{machine}/{key}",
       .id = "get_instance",
       .summary = "One instance; answers 304 to its ETag in If-None-Match",
       .response = schema_ref("Instance"),
       .errors = {Code::unknown_machine, Code::unknown_instance},
       .run_fast = [&engine](const http::Request& request) { return get_instance(engine, request); }},
      {.path = "/v1/instances/{machine}/{key}/history",
       .id = "get_history",
       .summary = "What happened to an instance, newest first",
       .query = {{.name = "before",
                  .description = "`next` of the page before",
                  .schema = R"({"type":"integer","minimum":0})"},
                 limit_of_page()},
       .response = schema_ref("History"),
       .errors = {Code::unknown_machine, Code::unknown_instance, Code::invalid_argument},
       .run = [&engine](const http::Request& request) { return get_history(engine, request); }},
      {.path = "/v1/instances/{machine}/{key}/ephemerals",
       .id = "get_ephemerals",
       .summary = "Values kept beside an instance, such as progress",
       .response = schema_ref("Ephemerals"),
       .errors = {Code::unknown_machine, Code::unknown_instance},
       .run = [&engine](const http::Request& request) { return get_ephemerals(engine, request); }},
  };
}

}  // namespace

std::vector<http::Route> instance_routes(Engine& engine) {
  auto routes = reading_routes(engine);
  routes.push_back({.method = http::Method::post,
                    .path = "/v1/instances/{machine}",
                    .id = "create_instance",
                    .summary = "Begin an instance, though not a run or a worker; answered once it is durable",
                    .role = http::Role::operator_,
                    .request = schema_ref("Creation"),
                    .response = schema_ref("Instance"),
                    .success = 201,
                    .errors = {Code::unknown_machine, Code::duplicate_instance, Code::missing_field,
                               Code::invalid_argument, Code::request_id_reused},
                    .takes_request_id = true,
                    .run_async = committing(engine, creation, 201)});
  routes.push_back(
      {.method = http::Method::post,
       .path = "/v1/instances/{machine}/{key}/events",
       .id = "send_event",
       .summary = "Send an event to an instance, though not to a run or a worker; answered once "
                  "it is durable",
       .role = http::Role::operator_,
       .request = schema_ref("Sending"),
       .response = schema_ref("Instance"),
       .errors = {Code::unknown_machine, Code::unknown_instance, Code::unknown_event, Code::illegal_event,
                  Code::version_conflict, Code::invalid_argument, Code::request_id_reused},
       .takes_request_id = true,
       .run_async = committing(engine, sending, 200)});
  return routes;
}

}  // namespace pawl::server
