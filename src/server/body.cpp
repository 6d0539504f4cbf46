// SPDX-License-Identifier: Apache-2.0
#include "server/body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <vector>

#include "kernel/suggestion.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostKey = 128;

Error wrong_parameter(std::string_view name, std::string_view expected, std::string_view got) {
  return {Code::invalid_argument,
          fmt::format("the parameter \"{}\" is {}, not \"{}\"", name, expected, got.substr(0, 64)),
          {{"parameter", std::string(name)}}};
}

}  // namespace

Result<Body> Body::parse(const http::Request& request, std::initializer_list<std::string_view> known) {
  PAWL_TRY(auto parsed,
           JsonDocument::parse(request.body, {.bytes = request.body.size(), .unique_keys = true}));
  auto document = std::make_shared<const JsonDocument>(std::move(parsed));
  const auto root = document->root();
  return make(std::move(document), root, "$", known);
}

Result<Body> Body::make(std::shared_ptr<const JsonDocument> document, JsonValue root, std::string path,
                        std::initializer_list<std::string_view> known) {
  if (root.kind() != JsonKind::object) {
    return fail(Code::wrong_type, fmt::format("{}: expected object, got {}", path, root.kind_name()),
                {{"path", path}});
  }
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto name = root.key_at(i);
    if (std::ranges::find(known, name) != known.end()) continue;
    std::vector<std::string> names(known.begin(), known.end());
    return fail(Code::unknown_name,
                fmt::format("{} has no field \"{}\"{}", path == "$" ? "the body" : path, name.substr(0, 64),
                            suggestion(name, names)),
                {{"path", fmt::format("{}.{}", path, name.substr(0, 64))}});
  }
  return Body(std::move(document), root, std::move(path));
}

std::string Body::place(std::string_view name) const { return fmt::format("{}.{}", path_, name); }

Error Body::wrong_type(std::string_view name, std::string_view expected, const JsonValue& got) const {
  return {Code::wrong_type,
          fmt::format("{}: expected {}, got {}", place(name), expected, got.kind_name()),
          {{"path", place(name)}}};
}

Result<std::string> Body::text(std::string_view name) const {
  const auto value = root_.find(name);
  if (!value) {
    return fail(Code::missing_field, fmt::format("{}: required, but absent", place(name)),
                {{"path", place(name)}});
  }
  const auto text = value->as_string();
  if (!text) return fail(wrong_type(name, "string", *value));
  return std::string(*text);
}

Result<std::string> Body::text_or(std::string_view name, std::string_view default_value) const {
  if (!root_.find(name)) return std::string(default_value);
  return text(name);
}

Result<std::optional<std::int64_t>> Body::integer(std::string_view name) const {
  const auto value = root_.find(name);
  if (!value || value->kind() == JsonKind::null) return std::nullopt;
  const auto number = value->as_integer();
  if (!number) return fail(wrong_type(name, "integer", *value));
  return number;
}

Result<std::optional<double>> Body::number(std::string_view name) const {
  const auto value = root_.find(name);
  if (!value || value->kind() == JsonKind::null) return std::nullopt;
  const auto number = value->as_number();
  if (!number) return fail(wrong_type(name, "number", *value));
  return number;
}

Result<std::optional<Duration>> Body::duration(std::string_view name) const {
  if (!root_.find(name)) return std::nullopt;
  PAWL_TRY(const auto given, text(name));
  const auto parsed = parse_duration(given);
  if (parsed) return *parsed;
  return fail(Code::invalid_argument,
              fmt::format("{} is a duration such as \"10s\", not \"{}\"", place(name), given.substr(0, 64)),
              {{"path", place(name)}});
}

Result<std::vector<std::string>> Body::texts(std::string_view name) const {
  std::vector<std::string> all;
  const auto value = root_.find(name);
  if (!value) return all;
  if (value->kind() != JsonKind::array) return fail(wrong_type(name, "array", *value));
  for (std::size_t i = 0; i < value->size(); ++i) {
    const auto text = value->at(i).as_string();
    if (!text) return fail(wrong_type(fmt::format("{}[{}]", name, i), "string", value->at(i)));
    all.emplace_back(*text);
  }
  return all;
}

Result<std::string> Body::object(std::string_view name) const {
  const auto value = root_.find(name);
  if (!value) return std::string("{}");
  if (value->kind() != JsonKind::object) return fail(wrong_type(name, "object", *value));
  return value->to_text();
}

std::optional<std::string> Body::value(std::string_view name) const {
  const auto found = root_.find(name);
  return found ? std::optional(found->to_text()) : std::nullopt;
}

Result<std::optional<Body>> Body::inner(std::string_view name,
                                        std::initializer_list<std::string_view> known) const {
  const auto value = root_.find(name);
  if (!value) return std::nullopt;
  PAWL_TRY(auto made, make(document_, *value, place(name), known));
  return made;
}

Result<std::size_t> limit_parameter(const http::Request& request, std::size_t default_value,
                                    std::size_t most) {
  const auto& text = request.parameter("limit");
  if (text.empty() && !request.has_parameter("limit")) return default_value;
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
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (rest != end || error != std::errc{} || value < 0) {
    return fail(wrong_parameter(
        name, fmt::format("a number from 0 to {}", std::numeric_limits<std::int64_t>::max()), text));
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

Result<std::optional<Duration>> duration_parameter(const http::Request& request, std::string_view name) {
  if (!request.has_parameter(name)) return std::nullopt;
  const auto duration = parse_duration(request.parameter(name));
  if (!duration) return fail(wrong_parameter(name, "a duration such as 10s", request.parameter(name)));
  return *duration;
}

http::Parameter order_of_listing() {
  return {.name = "order",
          .description = "which come first: the oldest, or the newest",
          .schema = R"({"type":"string","enum":["oldest","newest"],"default":"oldest"})"};
}

Result<bool> newest_first_parameter(const http::Request& request) {
  const auto& order = request.parameter("order");
  if (order.empty() || order == "oldest") return false;
  if (order == "newest") return true;
  return fail(wrong_parameter("order", "oldest or newest", order));
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
  // The caller is part of it: two callers may choose the same key.
  return key.empty() ? std::string() : fmt::format("http/{}/{}", request.user, key);
}

}  // namespace pawl::server
