// SPDX-License-Identifier: Apache-2.0
#include "images/source/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "kernel/utf8.hpp"

namespace pawl::images::s3 {
namespace {

constexpr std::size_t kLongestTag = 256;
constexpr std::size_t kLongestUrl = 4096;
constexpr std::size_t kLongestMessage = 256;
constexpr std::size_t kLongestCode = 64;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Digits only, all of them.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_host(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return host.find_first_not_of("0123456789abcdef:.", 1) == host.size() - 1;
  if (host.empty() || host.size() > 253 || host.front() == '.' || host.front() == '-') return false;
  return std::ranges::all_of(host, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-'; });
}

std::optional<unsigned char> hexadecimal(std::string_view digits) {
  unsigned char value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 2 || failure != std::errc{} || end != digits.data() + 2) return std::nullopt;
  return value;
}

std::optional<std::string> decoded(std::string_view path) {
  std::string result;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      result += path[i];
      continue;
    }
    const auto byte = hexadecimal(path.substr(i + 1, 2));
    if (!byte) return std::nullopt;
    result += static_cast<char>(*byte);
    i += 2;
  }
  return result;
}

std::unexpected<Error> bad_url(std::string_view text) {
  return fail(Code::invalid_argument,
              fmt::format("the address \"{}\" is not of the form http[s]://host[:port][/path]", shown(text)));
}

/// The first element of this name, whatever surrounds it.
std::string_view element(std::string_view body, std::string_view name) {
  const auto opening = fmt::format("<{}>", name);
  const auto begin = body.find(opening);
  if (begin == std::string_view::npos) return {};
  body.remove_prefix(begin + opening.size());
  const auto end = body.find('<');
  return end == std::string_view::npos ? std::string_view() : without_blanks(body.substr(0, end));
}

std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
  std::string result;
  while (!text.empty()) {
    const auto* const known =
        std::ranges::find_if(kEntities, [&](const auto& entity) { return text.starts_with(entity.first); });
    const auto used = known == kEntities.end() ? 1 : known->first.size();
    result += known == kEntities.end() ? text.front() : known->second;
    text.remove_prefix(used);
  }
  return result;
}

}  // namespace

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Result<Url> parse_url(std::string_view text) {
  Url url;
  const auto scheme = lowered(text.substr(0, text.find("://")));
  if (scheme.size() == text.size() || text.size() > kLongestUrl) return bad_url(text);
  if (scheme != "http" && scheme != "https") return bad_url(text);
  url.tls = scheme == "https";
  auto rest = text.substr(scheme.size() + 3);
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto path = rest.substr(slash);
  rest = rest.substr(0, slash);

  url.port = url.tls ? 443 : 80;
  const auto bracket = rest.find(']');
  const auto colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const auto port = number<std::uint16_t>(rest.substr(colon + 1));
    if (!port || *port == 0) return bad_url(text);
    url.port = *port;
  }
  url.host = lowered(rest.substr(0, colon));
  if (!is_host(url.host) || path.find_first_of("?#") != std::string_view::npos) return bad_url(text);
  auto bytes = decoded(path);
  if (!bytes) return bad_url(text);
  url.path = *std::move(bytes);
  return url;
}

std::string authority(const Url& url) {
  if (url.port == (url.tls ? 443 : 80)) return url.host;
  return fmt::format("{}:{}", url.host, url.port);
}

std::string origin(const Url& url) {
  return fmt::format("{}://{}", url.tls ? "https" : "http", authority(url));
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!lowered(text).starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto total = number<std::uint64_t>(text.substr(slash + 1));
  if (!total) return std::nullopt;
  const auto span = text.substr(0, slash);
  if (span == "*") return ContentRange{.total = *total};
  const auto dash = std::min(span.find('-'), span.size());
  const auto first = number<std::uint64_t>(span.substr(0, dash));
  const auto last = number<std::uint64_t>(span.substr(std::min(dash + 1, span.size())));
  if (!first || !last || *first > *last || *last >= *total) return std::nullopt;
  return ContentRange{.first = *first, .last = *last, .total = *total};
}

std::optional<Time> parse_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr std::string_view kForm = "aaa, 00 aaa 0000 00:00:00 GMT";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    const bool fits = kForm[i] == '0'   ? is_digit
                      : kForm[i] == 'a' ? is_letter_or_digit(text[i]) && !is_digit
                                        : text[i] == kForm[i];
    if (!fits) return std::nullopt;
  }
  const auto at = [&](std::size_t begin, std::size_t size) {
    return *number<unsigned>(text.substr(begin, size));
  };
  const auto month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  const std::chrono::year_month_day day(std::chrono::year(static_cast<int>(at(12, 4))),
                                        std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
                                        std::chrono::day(at(5, 2)));
  if (!day.ok() || at(17, 2) > 23 || at(20, 2) > 59 || at(23, 2) > 60) return std::nullopt;
  return Time(std::chrono::sys_days(day)) + std::chrono::hours(at(17, 2)) + std::chrono::minutes(at(20, 2)) +
         std::chrono::seconds(at(23, 2));
}

void AnswerHead::add(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = AnswerHead();
    const auto blank = std::min(line.find(' '), line.size());
    status = number<int>(without_blanks(line.substr(blank)).substr(0, 3)).value_or(0);
    return;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const auto name = lowered(line.substr(0, colon));
  const auto value = without_blanks(line.substr(colon + 1));
  const bool is_plain = std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
  if (name == "content-length") length = number<std::uint64_t>(value);
  if (name == "content-range") range = parse_content_range(value);
  if (name == "transfer-encoding") chunked = lowered(value).ends_with("chunked");
  if (name == "date") date = parse_http_date(value);
  if (name == "etag" && is_plain && value.size() <= kLongestTag) etag = value;
  if (name == "location" && is_plain && value.size() <= kLongestUrl) location = value;
  if (name == "x-amz-bucket-region" && is_region(value)) region = value;
}

Refusal parse_refusal(std::string_view body) {
  Refusal refusal;
  const auto code = element(body, "Code");
  if (code.size() <= kLongestCode &&
      std::ranges::all_of(code, [](char c) { return is_letter_or_digit(c) || c == '.'; }))
    refusal.code = code;
  if (const auto region = element(body, "Region"); is_region(region)) refusal.region = region;
  auto message = unescaped(element(body, "Message"));
  std::ranges::replace_if(message, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (!is_utf8(message)) return refusal;
  message.resize(std::min(message.size(), kLongestMessage));
  while (!is_utf8(message)) message.pop_back();  // the end of a character was cut off
  refusal.message = std::move(message);
  return refusal;
}

}  // namespace pawl::images::s3
