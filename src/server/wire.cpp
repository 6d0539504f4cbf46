// SPDX-License-Identifier: Apache-2.0
#include "server/wire.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "server/problem.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kWorthCompressing = 1024;

/// "Mon, 16 Nov 2026 02:00:00 GMT"; made once per second and thread.
std::string_view http_date() {
  thread_local std::time_t made_at = -1;
  thread_local std::string text;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now != made_at) {
    std::tm parts{};
    gmtime_r(&now, &parts);
    static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    text =
        fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[static_cast<std::size_t>(parts.tm_wday)],
                    parts.tm_mday, kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900,
                    parts.tm_hour, parts.tm_min, parts.tm_sec);
    made_at = now;
  }
  return text;
}

bool has_header(const http::Response& response, std::string_view name) {
  return std::ranges::any_of(response.headers, [&](const auto& header) { return header.first == name; });
}

}  // namespace

std::optional<http::Method> to_method(std::string_view name) {
  if (name == "HEAD") return http::Method::get;
  for (const auto method : {http::Method::get, http::Method::post, http::Method::put, http::Method::patch,
                            http::Method::remove}) {
    if (name == http::name(method)) return method;
  }
  return std::nullopt;
}

std::string to_bytes(const http::Response& response, bool keep_alive, bool head, bool secure) {
  std::string bytes;
  bytes.reserve(384 + response.body.size());
  const auto add = [&bytes](std::initializer_list<std::string_view> parts) {
    for (const auto part : parts) bytes += part;
  };
  add({"HTTP/1.1 ", fmt::format_int(response.status).c_str(), " ", reason(response.status),
       "\r\nDate: ", http_date(), "\r\n"});
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!bodiless) add({"Content-Type: ", response.content_type, "\r\n"});
  if (!bodiless && !response.stream)
    add({"Content-Length: ", fmt::format_int(response.body.size()).c_str(), "\r\n"});
  if (!keep_alive) bytes += "Connection: close\r\n";
  if (!has_header(response, "Cache-Control")) bytes += "Cache-Control: no-store\r\n";
  bytes += "X-Content-Type-Options: nosniff\r\n";
  if (secure) bytes += "Strict-Transport-Security: max-age=31536000\r\n";
  for (const auto& [name, value] : response.headers) {
    // A line break in a value would let it write headers of its own.
    if (value.find_first_of("\r\n") != std::string::npos) continue;
    add({name, ": ", value, "\r\n"});
  }
  bytes += "\r\n";
  if (!head && !bodiless && !response.stream) bytes += response.body;
  return bytes;
}

bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const auto comma = accept_encoding.find(',');
    auto item = accept_encoding.substr(0, comma);
    accept_encoding = comma == std::string_view::npos ? "" : accept_encoding.substr(comma + 1);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    const auto name = item.substr(0, item.find_first_of("; "));
    if (name != "gzip" && name != "*") continue;
    const auto weight = item.find("q=");
    return weight == std::string_view::npos || item.substr(weight + 2).find_first_of("123456789") == 0 ||
           item.substr(weight + 2).find_first_of("123456789") == 2;
  }
  return false;
}

bool is_worth_compressing(const http::Response& response) {
  const bool is_text =
      response.content_type.find("json") != std::string::npos || response.content_type.starts_with("text/");
  return response.body.size() >= kWorthCompressing && is_text && !has_header(response, "Content-Encoding");
}

void compress(http::Response& response) {
  if (!is_worth_compressing(response)) return;
  z_stream zip{};
  // 16 more window bits ask zlib for the gzip format.
  if (deflateInit2(&zip, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return;
  std::string packed(deflateBound(&zip, static_cast<uLong>(response.body.size())), '\0');
  zip.next_in = reinterpret_cast<Bytef*>(response.body.data());
  zip.avail_in = static_cast<uInt>(response.body.size());
  zip.next_out = reinterpret_cast<Bytef*>(packed.data());
  zip.avail_out = static_cast<uInt>(packed.size());
  const int done = deflate(&zip, Z_FINISH);
  packed.resize(zip.total_out);
  deflateEnd(&zip);
  if (done != Z_STREAM_END) return;
  response.body = std::move(packed);
  response.headers.emplace_back("Content-Encoding", "gzip");
  response.headers.emplace_back("Vary", "Accept-Encoding");
}

http::Response wire_response(const Error& error) { return to_response(error); }

Error slow_request() {
  return {Code::slow_request, "the request did not arrive within the time that the limits allow"};
}
Error header_too_large(const HttpLimits& limits) {
  return {Code::header_too_large, fmt::format("the header is larger than {} bytes", limits.header_bytes)};
}
Error body_too_large(const HttpLimits& limits) {
  return {Code::too_large, fmt::format("the body is larger than {} bytes", limits.body_bytes)};
}
Error malformed_request(std::string_view why) {
  return {Code::malformed_request, fmt::format("this is not an HTTP/1.1 request: {}", why)};
}
Error unsupported_method() {
  return {Code::method_not_allowed,
          "no path takes this method",
          {{"allow", "GET, HEAD, POST, PUT, PATCH, DELETE"}}};
}

}  // namespace pawl::server
