// SPDX-License-Identifier: Apache-2.0
#include "server/body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "server/names.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostKey = 128;

Error wrong_type(std::string_view name, std::string_view expected, const JsonValue& got) {
  return {Code::wrong_type,
          fmt::format("$.{}: expected {}, got {}", name, expected, got.kind_name()),
          {{"path", fmt::format("$.{}", name)}}};
}

Error wrong_parameter(std::string_view name, std::string_view expected, std::string_view got) {
  return {Code::invalid_argument,
          fmt::format("the parameter \"{}\" is {}, not \"{}\"", name, expected, got.substr(0, 64)),
          {{"parameter", std::string(name)}}};
}

}  // namespace

Result<Body> Body::parse(const http::Request& request, std::initializer_list<std::string_view> known) {
  PAWL_TRY(auto document, JsonDocument::parse(request.body, {.bytes = request.body.size()}));
  const auto root = document.root();
  if (root.kind() != JsonKind::object) {
    return fail(Code::wrong_type, fmt::format("$: expected object, got {}", root.kind_name()),
                {{"path", "$"}});
  }
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto name = root.key_at(i);
    if (std::ranges::find(known, name) != known.end()) continue;
    std::vector<std::string> names(known.begin(), known.end());
    return fail(Code::unknown_name,
                fmt::format("the body has no field \"{}\"{}", name.substr(0, 64), suggestion(name, names)),
                {{"path", fmt::format("$.{}", name.substr(0, 64))}});
  }
  return Body(std::move(document));
}

Result<std::string> Body::text(std::string_view name) const {
  const auto value = document_.root().find(name);
  if (!value) {
    return fail(Code::missing_field, fmt::format("$.{}: required, but absent", name),
                {{"path", fmt::format("$.{}", name)}});
  }
  const auto text = value->as_string();
  if (!text) return fail(wrong_type(name, "string", *value));
  return std::string(*text);
}

Result<std::string> Body::text_or(std::string_view name, std::string_view otherwise) const {
  if (!document_.root().find(name)) return std::string(otherwise);
  return text(name);
}

Result<std::optional<std::int64_t>> Body::integer(std::string_view name) const {
  const auto value = document_.root().find(name);
  if (!value || value->kind() == JsonKind::null) return std::nullopt;
  const auto number = value->as_integer();
  if (!number) return fail(wrong_type(name, "integer", *value));
  return number;
}

Result<std::string> Body::object(std::string_view name) const {
  const auto value = document_.root().find(name);
  if (!value) return std::string("{}");
  if (value->kind() != JsonKind::object) return fail(wrong_type(name, "object", *value));
  return value->to_text();
}

Result<std::size_t> limit_parameter(const http::Request& request, std::size_t otherwise, std::size_t most) {
  const auto& text = request.parameter("limit");
  if (text.empty() && !request.has_parameter("limit")) return otherwise;
  std::size_t limit = 0;
  const auto* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, limit).ptr != end || limit < 1 || limit > most) {
    return fail(wrong_parameter("limit", fmt::format("a number from 1 to {}", most), text));
  }
  return limit;
}

Result<std::int64_t> integer_parameter(const http::Request& request, std::string_view name) {
  const auto& text = request.parameter(name);
  if (text.empty() && !request.has_parameter(name)) return 0;
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value).ptr != end || value < 0) {
    return fail(wrong_parameter(name, "a number from 0 on", text));
  }
  return value;
}

Result<std::optional<Time>> time_parameter(const http::Request& request, std::string_view name) {
  if (!request.has_parameter(name)) return std::nullopt;
  const auto time = parse_time(request.parameter(name));
  if (!time)
    return fail(wrong_parameter(name, "a time such as 2026-11-15T21:40:00Z", request.parameter(name)));
  return *time;
}

Result<std::optional<bool>> boolean_parameter(const http::Request& request, std::string_view name) {
  if (!request.has_parameter(name)) return std::nullopt;
  const auto& text = request.parameter(name);
  if (text == "true") return true;
  if (text == "false") return false;
  return fail(wrong_parameter(name, "true or false", text));
}

Result<std::string> request_id(const http::Request& request) {
  const auto key = request.header("Idempotency-Key");
  const bool printable = std::ranges::all_of(key, [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (!printable || key.size() > kMostKey) {
    return fail(
        Code::invalid_argument,
        fmt::format("the header Idempotency-Key has 1 to {} printable ASCII characters without blanks",
                    kMostKey));
  }
  // Whose key it is belongs to it: two callers may choose the same.
  return key.empty() ? std::string() : fmt::format("http/{}/{}", request.user, key);
}

}  // namespace pawl::server
