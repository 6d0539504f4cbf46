// SPDX-License-Identifier: Apache-2.0
#include "cli/url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.hpp"
#include "pawl/http.hpp"
#include "server/origin.hpp"

namespace pawl::cli {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_letter(char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }

std::unexpected<Error> no_url(std::string_view text, std::string_view why) {
  return fail(Code::invalid_argument, fmt::format("\"{}\" is not the address of a server: {}; expected "
                                                  "http://HOST[:PORT] or https://HOST[:PORT]",
                                                  printable(text.substr(0, 128)), why));
}

bool good_host(std::string_view host, bool bracketed) {
  return !host.empty() && std::ranges::all_of(host, [&](char byte) {
    return is_digit(byte) || is_letter(byte) || byte == '.' || byte == '-' || byte == '_' ||
           (bracketed && (byte == ':' || byte == '%'));
  });
}

}  // namespace

std::string Url::authority() const {
  return fmt::format("{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
}

std::string Url::text() const { return fmt::format("{}://{}{}", tls ? "https" : "http", authority(), base); }

bool Url::loopback() const { return server::is_loopback(host); }

Result<Url> parse_url(std::string_view text) {
  Url url;
  auto rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return no_url(text, "it begins with neither http:// nor https://");
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  auto authority = rest.substr(0, slash);
  url.base = rest.substr(slash);
  while (url.base.ends_with('/')) url.base.pop_back();
  if (url.base.find_first_of("?# ") != std::string::npos || printable(url.base) != url.base) {
    return no_url(text, "its path has a query or a blank");
  }
  if (authority.find('@') != std::string_view::npos) return no_url("…", "it must not hold a password");
  const bool bracketed = authority.starts_with('[');
  const auto close = authority.find(']');
  if (bracketed && close == std::string_view::npos) return no_url(text, "a ] is missing");
  const auto after = bracketed ? close + 1 : std::min(authority.find(':'), authority.size());
  url.host = bracketed ? authority.substr(1, close - 1) : authority.substr(0, after);
  const auto port = authority.substr(after);
  url.port = port.empty() ? (url.tls ? "443" : "80") : port.substr(1);
  if (!good_host(url.host, bracketed)) return no_url(text, "the host is missing or malformed");
  const bool number = !url.port.empty() && url.port.size() <= 5 && std::ranges::all_of(url.port, is_digit);
  if ((!port.empty() && !port.starts_with(':')) || !number || std::stoi(url.port) > 65535) {
    return no_url(text, "the port is not a number up to 65535");
  }
  return url;
}

std::string query(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::string made;
  for (const auto& [name, value] : parameters) {
    if (!value.empty())
      made += fmt::format("{}{}={}", made.empty() ? "?" : "&", name, http::encode_percent(value));
  }
  return made;
}

}  // namespace pawl::cli
