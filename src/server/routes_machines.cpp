// SPDX-License-Identifier: Apache-2.0
// /v1/machines: the machines and their diagrams.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/suggestion.hpp"
#include "server/render.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

Result<const Definition*> find_machine(const Engine& engine, const std::string& name) {
  std::vector<std::string> known;
  for (const auto* definition : engine.definitions()) {
    if (definition->name == name) return definition;
    known.push_back(definition->name);
  }
  return fail(Code::unknown_machine,
              fmt::format("no machine \"{}\" is registered{}", name.substr(0, 64), suggestion(name, known)));
}

Result<http::Response> list_machines(const Engine& engine) {
  const auto counts = engine.counts();
  JsonWriter out;
  out.begin_object().key("machines").begin_array();
  for (const auto* definition : engine.definitions()) {
    if (definition->name.starts_with(http::kPrivateMachines)) continue;
    write_machine(out, *definition, counts.at(definition->name));
  }
  out.end_array().end_object();
  return http::json(out.take());
}

Result<http::Response> get_machine(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto* definition, find_machine(engine, request.parameter("machine")));
  JsonWriter out;
  write_machine(out, *definition, engine.counts().at(definition->name));
  return http::json(out.take());
}

Result<http::Response> draw_machine(const Engine& engine, const http::Request& request) {
  PAWL_TRY(const auto* definition, find_machine(engine, request.parameter("machine")));
  const auto& format = request.parameter("format");
  const auto text = [](std::string body) {
    return http::Response{.body = std::move(body), .content_type = "text/plain; charset=utf-8"};
  };
  if (format.empty() || format == "mermaid") {
    return text(to_mermaid(*definition, engine.counts().at(definition->name)));
  }
  if (format == "dot") return text(to_dot(*definition));
  if (format == "json") return http::Response{.body = to_json(*definition)};
  return fail(
      Code::invalid_argument,
      fmt::format("the parameter \"format\" is mermaid, dot or json, not \"{}\"", format.substr(0, 64)));
}

}  // namespace

std::vector<http::Route> machine_routes(Engine& engine) {
  return {
      {.path = "/v1/machines",
       .id = "list_machines",
       .summary = "All machines with their definition and the number of instances in each state",
       .response = schema_ref("Machines"),
       .run_fast = [&engine](const http::Request&) { return list_machines(engine); }},
      {.path = "/v1/machines/{machine}",
       .id = "get_machine",
       .summary = "One machine",
       .response = schema_ref("Machine"),
       .errors = {Code::unknown_machine},
       .run_fast = [&engine](const http::Request& request) { return get_machine(engine, request); }},
      {.path = "/v1/machines/{machine}/diagram",
       .id = "draw_machine",
       .summary = "The machine's diagram, with live counts in the Mermaid form",
       .query = {{.name = "format",
                  .description = "mermaid (default), dot or json",
                  .schema = R"({"type":"string","enum":["mermaid","dot","json"]})"}},
       .content_type = "text/plain",
       .errors = {Code::unknown_machine, Code::invalid_argument},
       .run_fast = [&engine](const http::Request& request) { return draw_machine(engine, request); }},
  };
}

}  // namespace pawl::server
