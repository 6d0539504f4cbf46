// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document, made from the routes themselves.
#include <fmt/format.h>

#include <map>
#include <set>

#include "pawl/json.hpp"
#include "server/problem.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

void write_content(JsonWriter& out, std::string_view type, std::string_view schema) {
  out.key("content").begin_object().key(type).begin_object();
  if (!schema.empty()) out.key("schema").embed(schema);
  out.end_object().end_object();
}

void write_parameter(JsonWriter& out, std::string_view in, const http::Parameter& parameter) {
  out.begin_object().key("name").string(parameter.name).key("in").string(in);
  out.key("required").boolean(parameter.required).key("description").string(parameter.description);
  out.key("schema").embed(parameter.schema).end_object();
}

void write_parameters(JsonWriter& out, const Router::Entry& entry) {
  out.key("parameters").begin_array();
  for (const auto& segment : entry.segments) {
    if (!segment.starts_with('{')) continue;
    write_parameter(out, "path",
                    {.name = segment.substr(1, segment.size() - 2), .description = "", .required = true});
  }
  for (const auto& parameter : entry.route.query) write_parameter(out, "query", parameter);
  if (entry.route.takes_request_id) {
    write_parameter(out, "header",
                    {.name = "Idempotency-Key",
                     .description = "a repeat with the same key and content returns the first outcome"});
  }
  out.end_array();
}

/// The route's own errors, and those that follow from its description.
std::set<Code> errors_of(const http::Route& route) {
  std::set<Code> codes(route.errors.begin(), route.errors.end());
  if (!route.query.empty()) codes.insert(Code::unknown_name);
  if (!route.request.empty()) {
    codes.insert({Code::malformed_json, Code::wrong_type, Code::unknown_name, Code::too_large,
                  Code::unsupported_media_type});
  }
  if (route.role != http::Role::anyone) {
    codes.insert({Code::unauthenticated, Code::rate_limited, Code::overloaded});
  }
  if (route.role > http::Role::viewer || route.method != http::Method::get) codes.insert(Code::forbidden);
  return codes;
}

void write_responses(JsonWriter& out, const http::Route& route) {
  out.key("responses").begin_object();
  for (const int success : {route.success, route.other_success}) {
    if (success == 0) continue;
    out.key(std::to_string(success)).begin_object().key("description").string("done");
    if (success != 204) write_content(out, route.content_type, route.response);
    out.end_object();
  }
  std::map<int, std::vector<Code>> by_status;
  for (const auto code : errors_of(route)) by_status[status_of(code)].push_back(code);
  for (const auto& [status, codes] : by_status) {
    std::string text;
    for (const auto code : codes) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : " ", name(code), info(code).summary);
    }
    out.key(std::to_string(status)).begin_object().key("description").string(text);
    out.key("x-codes").begin_array();
    for (const auto code : codes) out.string(name(code));
    out.end_array();
    write_content(out, "application/problem+json", schema_ref("Problem"));
    out.end_object();
  }
  out.key("default")
      .begin_object()
      .key("description")
      .string("overload, a stopping server or a failed store");
  write_content(out, "application/problem+json", schema_ref("Problem"));
  out.end_object().end_object();
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (auto& letter : made) letter = static_cast<char>(letter | 0x20);
  return made;
}

void write_operation(JsonWriter& out, const Router::Entry& entry) {
  const auto& route = entry.route;
  out.key(lower(http::name(route.method))).begin_object();
  out.key("operationId").string(route.id).key("summary").string(route.summary);
  out.key("x-role").string(http::name(route.role));
  if (route.role == http::Role::anyone) out.key("security").begin_array().end_array();
  write_parameters(out, entry);
  if (!route.request.empty()) {
    out.key("requestBody").begin_object().key("required").boolean(true);
    write_content(out, "application/json", route.request);
    out.end_object();
  }
  write_responses(out, route);
  out.end_object();
}

}  // namespace

Result<std::string> openapi(const std::vector<Router::Entry>& entries) {
  std::map<std::string, std::vector<const Router::Entry*>> by_path;
  for (const auto& entry : entries) by_path[entry.route.path].push_back(&entry);
  JsonWriter out;
  out.begin_object().key("openapi").string("3.1.0");
  out.key("info").begin_object().key("title").string("Pawl").key("version").string(PAWL_VERSION);
  out.key("description").string("Durable lifecycles: look at instances, begin them, send them events.");
  out.end_object().key("paths").begin_object();
  for (const auto& [path, operations] : by_path) {
    out.key(path).begin_object();
    for (const auto* operation : operations) write_operation(out, *operation);
    out.end_object();
  }
  out.end_object().key("components").begin_object().key("schemas").begin_object();
  for (const auto& [name, schema] : schemas()) out.key(name).embed(schema);
  out.end_object().key("securitySchemes").begin_object();
  out.key("token").embed(R"({"type":"http","scheme":"bearer"})");
  out.end_object().end_object().key("security").embed(R"([{"token":[]}])").end_object();
  return out.take();
}

}  // namespace pawl::server
