// SPDX-License-Identifier: Apache-2.0
#include "server/origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace pawl::server {
namespace {

/// "HOST", "HOST:PORT" or "[IPV6]:PORT", taken apart.
struct Authority {
  std::string_view host;  // without brackets
  std::string_view port;  // empty: none was given
};

char to_lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

bool same_in_any_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

/// Whether it is a decimal number without leading zeros, at most `most`.
bool is_plain_number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto* end = text.data() + text.size();
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text.front() == '0')) return false;
  return std::from_chars(text.data(), end, value).ptr == end && value <= most;
}

/// nullopt if malformed.
std::optional<Authority> parse_authority(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const auto end = std::min(text.find(bracketed ? ']' : ':'), text.size());
  const auto host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  auto rest = text.substr(std::min(end + (bracketed ? 1 : 0), text.size()));
  if (host.empty() || (bracketed && (end == text.size() || host.find(':') == std::string_view::npos))) {
    return std::nullopt;
  }
  if (rest.empty()) return Authority{host, {}};
  if (!rest.starts_with(':') || !is_plain_number(rest.substr(1), 65535)) return std::nullopt;
  return Authority{host, rest.substr(1)};
}

/// Every value of this header. A hostile request may have several.
std::vector<std::string_view> values_of(const http::Request& request, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : request.headers) {
    if (same_in_any_case(key, name)) values.emplace_back(value);
  }
  return values;
}

/// The scheme may differ, because a proxy may have ended TLS.
bool is_same_origin(std::string_view origin, std::string_view host) {
  const bool tls = origin.starts_with("https://");
  if (!tls && !origin.starts_with("http://")) return false;
  const auto from = parse_authority(origin.substr(tls ? 8 : 7));
  const auto to = parse_authority(host);
  const std::string_view usual = tls ? "443" : "80";
  const auto port = [&](const Authority& authority) {
    return authority.port.empty() ? usual : authority.port;
  };
  return from && to && same_in_any_case(from->host, to->host) && port(*from) == port(*to);
}

}  // namespace

bool is_loopback(std::string_view host) {
  if (host == "::1" || same_in_any_case(host, "localhost")) return true;
  if (!host.starts_with("127.")) return false;
  int parts = 0;
  while (true) {
    const auto dot = std::min(host.find('.'), host.size());
    if (!is_plain_number(host.substr(0, dot), 255) || ++parts > 4) return false;
    if (dot == host.size()) return parts == 4;
    host.remove_prefix(dot + 1);
  }
}

Result<void> check_local_host(const http::Request& request) {
  for (const auto host : values_of(request, "Host")) {
    const auto authority = parse_authority(host);
    if (authority && is_loopback(authority->host)) continue;
    return fail(
        Code::forbidden,
        fmt::format("without auth the server answers to localhost only, not to \"{}\"", host.substr(0, 64)));
  }
  return {};
}

Result<void> check_same_site(const http::Request& request) {
  const auto sites = values_of(request, "Sec-Fetch-Site");
  for (const auto site : sites) {
    if (site == "same-origin" || site == "none") continue;
    return fail(Code::forbidden, fmt::format("a page of another site sent this request (Sec-Fetch-Site: {})",
                                             site.substr(0, 64)));
  }
  // A proxy may have given the request another Host; the browser knows where its page came from.
  if (!sites.empty()) return {};
  for (const auto origin : values_of(request, "Origin")) {
    if (is_same_origin(origin, request.header("Host"))) continue;
    return fail(Code::forbidden,
                fmt::format("a page of another site sent this request: its Origin is \"{}\", the Host \"{}\"",
                            origin.substr(0, 64), request.header("Host").substr(0, 64)));
  }
  return {};
}

}  // namespace pawl::server
