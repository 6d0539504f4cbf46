// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>

#include "kernel/json_text.hpp"
#include "pawl/assert.hpp"
#include "pawl/json.hpp"

namespace pawl {
namespace {

namespace json = boost::json;

const json::value& node(const void* pointer) { return *static_cast<const json::value*>(pointer); }

/// Builds the document. Boost's own parser rounds numbers loosely, so that a stored double would drift each
/// time it is read and written; this one reads them exactly.
struct Builder {
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  json::value_stack stack;

  Builder(unsigned char* scratch, std::size_t size) : stack({}, scratch, size) {}

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_object_end(std::size_t count, json::error_code&) { return stack.push_object(count), true; }
  bool on_array_end(std::size_t count, json::error_code&) { return stack.push_array(count), true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    return stack.push_chars(part), true;
  }
  bool on_key(json::string_view last, std::size_t, json::error_code&) { return stack.push_key(last), true; }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    return stack.push_chars(part), true;
  }
  bool on_string(json::string_view last, std::size_t, json::error_code&) {
    return stack.push_string(last), true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    return stack.push_int64(value), true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
    return stack.push_uint64(value), true;
  }
  bool on_double(double rough, json::string_view text, json::error_code&) {
    // Where the text is beyond all doubles, `exact` is not touched: infinite or zero, as Boost says.
    double exact = rough;
    std::from_chars(text.data(), text.data() + text.size(), exact);
    return stack.push_double(exact), true;
  }
  bool on_bool(bool value, json::error_code&) { return stack.push_bool(value), true; }
  bool on_null(json::error_code&) { return stack.push_null(), true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

void append(std::string& out, const json::value& value);

void append(std::string& out, const json::array& array) {
  out += '[';
  for (const auto& element : array) {
    if (&element != array.data()) out += ',';
    append(out, element);
  }
  out += ']';
}

void append(std::string& out, const json::object& object) {
  out += '{';
  for (const auto& member : object) {
    if (&member != &*object.begin()) out += ',';
    append_json_string(out, {member.key().data(), member.key().size()});
    out += ':';
    append(out, member.value());
  }
  out += '}';
}

void append(std::string& out, const json::value& value) {
  if (const auto* array = value.if_array()) return append(out, *array);
  if (const auto* object = value.if_object()) return append(out, *object);
  if (const auto* text = value.if_string()) return append_json_string(out, {text->data(), text->size()});
  if (const auto* number = value.if_double()) return append_json_number(out, *number);
  if (const auto* integer = value.if_int64()) {
    out += fmt::format_int(*integer).c_str();
  } else if (const auto* large = value.if_uint64()) {
    out += fmt::format_int(*large).c_str();
  } else if (const auto* boolean = value.if_bool()) {
    out += *boolean ? "true" : "false";
  } else {
    out += "null";
  }
}

}  // namespace

// Small documents, the usual case, live entirely in the inline buffer.
struct JsonDocument::Body {
  std::array<unsigned char, 2048> buffer;
  json::monotonic_resource resource{buffer.data(), buffer.size()};
  // Of the same storage, so that the parsed value is moved into it and not copied.
  json::value root = json::value(json::storage_ptr(&resource));
};

JsonDocument::JsonDocument(std::unique_ptr<Body> body) noexcept : body_(std::move(body)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

Result<JsonDocument> JsonDocument::parse(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.bytes) {
    return fail(Code::too_large,
                fmt::format("JSON text has {} bytes; the limit is {}", text.size(), limits.bytes),
                {{"limit", std::to_string(limits.bytes)}});
  }
  auto body = std::make_unique_for_overwrite<Body>();
  json::parse_options options;
  options.max_depth = limits.depth;
  std::array<unsigned char, 1024> scratch;
  json::basic_parser<Builder> parser(options, scratch.data(), scratch.size());
  parser.handler().stack.reset(&body->resource);
  json::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error && consumed != text.size()) error = json::error::extra_data;
  if (error == json::error::too_deep) {
    return fail(Code::too_deep, fmt::format("JSON is nested more than {} levels deep", limits.depth),
                {{"limit", std::to_string(limits.depth)}, {"offset", std::to_string(consumed)}});
  }
  if (error) {
    return fail(Code::malformed_json, fmt::format("not valid JSON at byte {}: {}", consumed, error.message()),
                {{"offset", std::to_string(consumed)}});
  }
  body->root = parser.handler().stack.release();
  return JsonDocument(std::move(body));
}

JsonValue JsonDocument::root() const noexcept { return JsonValue(&body_->root); }

JsonKind JsonValue::kind() const noexcept {
  switch (node(node_).kind()) {
    case json::kind::null:
      return JsonKind::null;
    case json::kind::bool_:
      return JsonKind::boolean;
    case json::kind::int64:
    case json::kind::uint64:
      return JsonKind::integer;
    case json::kind::double_:
      return JsonKind::number;
    case json::kind::string:
      return JsonKind::string;
    case json::kind::array:
      return JsonKind::array;
    case json::kind::object:
      return JsonKind::object;
  }
  return JsonKind::null;
}

std::string_view JsonValue::kind_name() const noexcept {
  constexpr std::array<std::string_view, 7> kNames{"null",   "boolean", "integer", "number",
                                                   "string", "array",   "object"};
  return kNames[static_cast<std::size_t>(kind())];
}

std::optional<bool> JsonValue::as_boolean() const noexcept {
  if (const auto* value = node(node_).if_bool()) return *value;
  return std::nullopt;
}

std::optional<std::int64_t> JsonValue::as_integer() const noexcept {
  if (const auto* value = node(node_).if_int64()) return *value;
  return std::nullopt;
}

std::optional<std::uint64_t> JsonValue::as_unsigned() const noexcept {
  if (const auto* value = node(node_).if_uint64()) return *value;
  if (const auto* value = node(node_).if_int64(); value != nullptr && *value >= 0) {
    return static_cast<std::uint64_t>(*value);
  }
  return std::nullopt;
}

std::optional<double> JsonValue::as_number() const noexcept {
  const auto& value = node(node_);
  if (const auto* number = value.if_double())
    return std::isfinite(*number) ? std::optional(*number) : std::nullopt;
  if (const auto* integer = value.if_int64()) return static_cast<double>(*integer);
  if (const auto* large = value.if_uint64()) return static_cast<double>(*large);
  return std::nullopt;
}

std::optional<std::string_view> JsonValue::as_string() const noexcept {
  if (const auto* value = node(node_).if_string()) return std::string_view(value->data(), value->size());
  return std::nullopt;
}

std::size_t JsonValue::size() const noexcept {
  if (const auto* array = node(node_).if_array()) return array->size();
  if (const auto* object = node(node_).if_object()) return object->size();
  return 0;
}

JsonValue JsonValue::at(std::size_t index) const noexcept {
  PAWL_ASSERT(index < size(), "a JSON index is within its container", index, size());
  if (const auto* array = node(node_).if_array()) return JsonValue(&(*array)[index]);
  return JsonValue(&(node(node_).if_object()->begin() + static_cast<std::ptrdiff_t>(index))->value());
}

std::string_view JsonValue::key_at(std::size_t index) const noexcept {
  const auto* object = node(node_).if_object();
  PAWL_ASSERT(object != nullptr && index < object->size(), "a JSON member index is within its object", index);
  const auto key = (object->begin() + static_cast<std::ptrdiff_t>(index))->key();
  return {key.data(), key.size()};
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const noexcept {
  const auto* object = node(node_).if_object();
  if (object == nullptr) return std::nullopt;
  if (const auto* value = object->if_contains(json::string_view(key.data(), key.size())))
    return JsonValue(value);
  return std::nullopt;
}

std::string JsonValue::to_text() const {
  std::string out;
  append(out, node(node_));
  return out;
}

}  // namespace pawl
