// SPDX-License-Identifier: Apache-2.0
#include "server/problem.hpp"

#include <fmt/format.h>

#include <utility>

#include "pawl/json.hpp"

namespace pawl::server {

int status_of(Code code) noexcept {
  switch (code) {
    case Code::unknown_machine:
    case Code::unknown_instance:
    case Code::unknown_pool:
    case Code::unknown_route:
      return 404;
    case Code::illegal_event:
    case Code::guard_refused:
    case Code::finished_instance:
    case Code::duplicate_instance:
    case Code::version_conflict:
    case Code::wrong_partition:
    case Code::row_expectation_failed:
    case Code::sql_failed:
      return 409;
    case Code::request_id_reused:
      return 422;
    case Code::unknown_state:
    case Code::unknown_event:
    case Code::unknown_name:
    case Code::invalid_argument:
    case Code::malformed_json:
    case Code::wrong_type:
    case Code::missing_field:
    case Code::too_deep:
    case Code::cursor_invalid:
    case Code::sql_refused:
    case Code::malformed_request:
      return 400;
    case Code::too_large:
      return 413;
    case Code::cursor_expired:
      return 410;
    case Code::unauthenticated:
      return 401;
    case Code::forbidden:
      return 403;
    case Code::method_not_allowed:
      return 405;
    case Code::slow_request:
      return 408;
    case Code::unsupported_media_type:
      return 415;
    case Code::rate_limited:
      return 429;
    case Code::header_too_large:
      return 431;
    case Code::disk_full:
      return 507;
    case Code::timed_out:
      return 504;
    case Code::overloaded:
    case Code::stopped:
    case Code::cancelled:
    case Code::subscriber_lagged:
    case Code::store_poisoned:
    case Code::store_locked:
    case Code::store_fenced:
    case Code::store_read_only:
    case Code::rolled_back:
      return 503;
    case Code::duplicate_machine:
    case Code::unsupported_schema:
    case Code::decision_threw:
    case Code::unencodable:
    case Code::outcome_unknown:
    case Code::store_newer:
    case Code::store_corrupt:
    case Code::store_io:
    case Code::store_unsafe:
    case Code::store_diverged:
    case Code::retries_exhausted:
    case Code::internal:
    case Code::work_threw:
    case Code::config_invalid:
    case Code::unsafe_address:
      return 500;
  }
  return 500;
}

std::string_view reason(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
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
  // What the caller sent and an error repeats need not be UTF-8; what stands in the registry is.
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
