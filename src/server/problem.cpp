// SPDX-License-Identifier: Apache-2.0
#include "server/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "pawl/json.hpp"

namespace pawl::server {

namespace {

struct Status {
  Code code;
  int status;
};
constexpr auto kStatuses = std::to_array<Status>({
    {Code::unknown_machine, 404},
    {Code::unknown_instance, 404},
    {Code::unknown_pool, 404},
    {Code::unknown_route, 404},
    {Code::illegal_event, 409},
    {Code::guard_refused, 409},
    {Code::finished_instance, 409},
    {Code::duplicate_instance, 409},
    {Code::version_conflict, 409},
    {Code::wrong_partition, 409},
    {Code::row_expectation_failed, 409},
    {Code::sql_failed, 409},
    {Code::request_id_reused, 422},
    {Code::unknown_state, 400},
    {Code::unknown_event, 400},
    {Code::unknown_name, 400},
    {Code::invalid_argument, 400},
    {Code::malformed_json, 400},
    {Code::wrong_type, 400},
    {Code::missing_field, 400},
    {Code::too_deep, 400},
    {Code::cursor_invalid, 400},
    {Code::sql_refused, 400},
    {Code::malformed_request, 400},
    {Code::too_large, 413},
    {Code::cursor_expired, 410},
    {Code::unauthenticated, 401},
    {Code::forbidden, 403},
    {Code::method_not_allowed, 405},
    {Code::slow_request, 408},
    {Code::unsupported_media_type, 415},
    {Code::rate_limited, 429},
    {Code::header_too_large, 431},
    {Code::disk_full, 507},
    {Code::timed_out, 504},
    {Code::overloaded, 503},
    {Code::stopped, 503},
    {Code::cancelled, 503},
    {Code::subscriber_lagged, 503},
    {Code::store_poisoned, 503},
    {Code::store_locked, 503},
    {Code::store_fenced, 503},
    {Code::store_read_only, 503},
    {Code::rolled_back, 503},
    {Code::duplicate_machine, 500},
    {Code::unsupported_schema, 500},
    {Code::decision_threw, 500},
    {Code::unencodable, 500},
    {Code::outcome_unknown, 500},
    {Code::store_newer, 500},
    {Code::store_corrupt, 500},
    {Code::store_io, 500},
    {Code::store_unsafe, 500},
    {Code::store_diverged, 500},
    {Code::retries_exhausted, 500},
    {Code::internal, 500},
    {Code::work_threw, 500},
    {Code::lease_lost, 409},
    {Code::template_invalid, 422},
    {Code::variable_missing, 422},
    {Code::spec_invalid, 422},
    {Code::unknown_worker_type, 422},
    {Code::worker_threw, 500},
    {Code::not_observed, 503},
    {Code::desired_conflict, 409},
    {Code::config_invalid, 500},
    {Code::unsafe_address, 500},
    {Code::unreachable, 502},
    {Code::answer_invalid, 502},
    {Code::source_missing, 404},
    {Code::source_denied, 502},
    {Code::source_changed, 409},
    {Code::source_failed, 502},
    {Code::archive_corrupt, 422},
    {Code::archive_hostile, 422},
    {Code::layout_invalid, 422},
    {Code::backend_unavailable, 503},
    {Code::pool_full, 507},
    {Code::volume_missing, 409},
    {Code::volume_exists, 409},
    {Code::volume_busy, 409},
    {Code::volume_failed, 503},
    {Code::process_failed, 503},
    {Code::connection_failed, 502},
});

#define PAWL_ONE(...) +1
static_assert(kStatuses.size() == 0 PAWL_ERROR_CODES(PAWL_ONE), "each code has its status");
#undef PAWL_ONE

}  // namespace

int status_of(Code code) noexcept {
  const auto* const found = std::ranges::find(kStatuses, code, &Status::code);
  return found == kStatuses.end() ? 500 : found->status;
}

std::string_view reason(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 507:
      return "Insufficient Storage";
    default:
      return "Internal Server Error";
  }
}

std::string to_problem(const Error& error) {
  const auto number = std::to_underlying(error.code());
  const int status = status_of(error.code());
  JsonWriter out;
  out.begin_object().key("type").string(fmt::format("urn:pawl:error:{}", number));
  out.key("title").string(info(error.code()).summary);
  out.key("status").integer(std::int64_t{status});
  out.key("detail").string(error.message());
  out.key("code").string(name(error.code()));
  out.key("number").integer(std::int64_t{number});
  out.key("fields").begin_object();
  for (const auto& field : error.fields()) out.key(field.key).string(field.value);
  out.end_object().end_object();
  if (auto text = out.take()) return *std::move(text);
  // An error may repeat input that is not UTF-8; the summary in the registry is UTF-8.
  return to_problem(Error(error.code(), std::string(info(error.code()).summary)));
}

http::Response to_response(const Error& error) {
  http::Response response{.status = status_of(error.code()),
                          .body = to_problem(error),
                          .content_type = "application/problem+json"};
  switch (error.code()) {
    case Code::method_not_allowed:
      response.headers.emplace_back("Allow", error.field("allow"));
      break;
    case Code::unauthenticated:
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
      break;
    case Code::overloaded:
    case Code::rate_limited:
      response.headers.emplace_back("Retry-After", "1");
      break;
    default:
      break;
  }
  return response;
}

}  // namespace pawl::server

namespace pawl::http {

Response problem(const Error& error) { return server::to_response(error); }

}  // namespace pawl::http
