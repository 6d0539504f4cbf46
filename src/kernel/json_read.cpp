// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "kernel/json_text.hpp"
#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/json.hpp"

namespace pawl {

/// One value. The elements of an array lie side by side, and so do an object's names and values in turn. An
/// integer is `large` where it needs the whole of 64 bits.
struct JsonNode {
  JsonKind kind = JsonKind::null;
  bool boolean = false;
  bool large = false;
  std::uint32_t size = 0;  // bytes of a string, elements, members
  union {
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer;
    double number;
    const char* text;
    std::size_t first;  // while it is built: the place of the children
    const JsonNode* children;
  };
};

namespace {

namespace json = boost::json;
using Node = JsonNode;

constexpr std::size_t kUsualText = 256;  // one allocation for most values

const Node& node(const void* pointer) { return *static_cast<const Node*>(pointer); }
std::string_view text_of(const Node& node) { return {node.text, node.size}; }

/// Builds the document from what Boost's parser finds: values that belong to no container yet are stacked; a
/// container that ends takes its own off the stack. Boost rounds numbers loosely, so that a stored double
/// would drift each time it is read and written; here they are read exactly.
class Builder {
 public:
  static constexpr std::size_t max_object_size = 0x7fffffff;
  static constexpr std::size_t max_array_size = 0x7fffffff;
  static constexpr std::size_t max_key_size = 0x7fffffff;
  static constexpr std::size_t max_string_size = 0x7fffffff;

  /// `text` has room for all strings of the document: as much as its source.
  Builder(std::vector<Node>& nodes, char* text, bool unique_keys)
      : nodes_(nodes), end_(text), unique_keys_(unique_keys) {}

  /// The document's root, once all of it was read.
  Node take() { return stack_.front(); }
  /// The path of a forbidden duplicate name; empty if there is none.
  const std::string& repeated() const { return repeated_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return open(JsonKind::object); }
  bool on_array_begin(json::error_code&) { return open(JsonKind::array); }
  bool on_object_end(std::size_t count, json::error_code& error) {
    const auto kept = drop_repeated(count);
    if (kept != count && unique_keys_) {
      error = json::error::syntax;
      return false;
    }
    return close(JsonKind::object, kept, 2 * kept);
  }
  bool on_array_end(std::size_t count, json::error_code&) { return close(JsonKind::array, count, count); }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) { return copy(part); }
  bool on_key(json::string_view last, std::size_t size, json::error_code&) { return finish(last, size); }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) { return copy(part); }
  bool on_string(json::string_view last, std::size_t size, json::error_code&) { return finish(last, size); }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    push(JsonKind::integer).integer = value;
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
    auto& made = push(JsonKind::integer);
    made.unsigned_integer = value;
    made.large = true;
    return true;
  }
  bool on_double(double rough, json::string_view text, json::error_code&) {
    // Where the text is beyond all doubles, `exact` is not touched: infinite or zero, as Boost says.
    double exact = rough;
    std::from_chars(text.data(), text.data() + text.size(), exact);
    push(JsonKind::number).number = exact;
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    push(JsonKind::boolean).boolean = value;
    return true;
  }
  bool on_null(json::error_code&) { return push(JsonKind::null), true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  Node& push(JsonKind kind) {
    auto& made = stack_.emplace_back();
    made.kind = kind;
    return made;
  }

  bool copy(json::string_view part) {
    end_ = std::copy(part.begin(), part.end(), end_);
    return true;
  }

  bool finish(json::string_view last, std::size_t size) {
    copy(last);
    auto& made = push(JsonKind::string);
    made.size = static_cast<std::uint32_t>(size);
    made.text = end_ - size;
    return true;
  }

  bool open(JsonKind kind) {
    if (unique_keys_) open_.push_back({kind, stack_.size()});
    return true;
  }

  /// Of a name in the innermost container that is open.
  std::string path_of(std::string_view name) const {
    std::string path = "$";
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const auto end = open_[i + 1].begin;
      // What is open inside an object stands behind its name, in an array behind the elements before it.
      path += open_[i].kind == JsonKind::object ? fmt::format(".{}", shown(text_of(stack_[end - 1])))
                                                : fmt::format("[{}]", end - open_[i].begin);
    }
    return fmt::format("{}.{}", path, shown(name));
  }

  bool close(JsonKind kind, std::size_t count, std::size_t nodes) {
    if (unique_keys_) open_.pop_back();
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(nodes);
    const auto first = nodes_.size();
    nodes_.insert(nodes_.end(), begin, stack_.end());
    stack_.erase(begin, stack_.end());
    auto& made = push(kind);
    made.size = static_cast<std::uint32_t>(count);
    made.first = first;
    return true;
  }

  /// Of a name that stands twice the last value counts, in the place of the first. Returns what is left.
  std::size_t drop_repeated(std::size_t count) {
    auto* members = stack_.data() + stack_.size() - 2 * count;
    if (!has_repeated(members, count)) return count;
    std::unordered_map<std::string_view, std::size_t> places;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto [place, is_new] = places.emplace(text_of(members[2 * i]), kept);
      if (is_new) members[2 * kept++] = members[2 * i];
      if (!is_new && unique_keys_ && repeated_.empty()) repeated_ = path_of(text_of(members[2 * i]));
      members[2 * place->second + 1] = members[2 * i + 1];
    }
    stack_.resize(stack_.size() - 2 * (count - kept));
    return kept;
  }

  static bool has_repeated(const Node* members, std::size_t count) {
    constexpr std::size_t kFew = 16;
    if (count > kFew) return true;  // not known yet; looked up in a table
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (text_of(members[2 * i]) == text_of(members[2 * j])) return true;
      }
    }
    return false;
  }

  struct Open {
    JsonKind kind;
    std::size_t begin;  // the place of its first child on the stack
  };

  boost::container::small_vector<Node, 48> stack_;
  boost::container::small_vector<Open, 8> open_;  // only if names must be unique
  std::string repeated_;
  std::vector<Node>& nodes_;
  char* end_;
  const bool unique_keys_;
};

/// Follows Boost's parser and keeps nothing.
class Follower {
 public:
  static constexpr std::size_t max_object_size = Builder::max_object_size;
  static constexpr std::size_t max_array_size = Builder::max_array_size;
  static constexpr std::size_t max_key_size = Builder::max_key_size;
  static constexpr std::size_t max_string_size = Builder::max_string_size;

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_object_end(std::size_t, json::error_code&) { return true; }
  bool on_array_end(std::size_t, json::error_code&) { return true; }
  bool on_key_part(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_key(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_string_part(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_string(json::string_view, std::size_t, json::error_code&) { return true; }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t, json::string_view, json::error_code&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code&) { return true; }
  bool on_double(double, json::string_view, json::error_code&) { return true; }
  bool on_bool(bool, json::error_code&) { return true; }
  bool on_null(json::error_code&) { return true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

void append(std::string& out, const Node& value);

void append_children(std::string& out, const Node& value) {
  const bool object = value.kind == JsonKind::object;
  out += object ? '{' : '[';
  for (std::size_t i = 0; i < value.size; ++i) {
    if (i != 0) out += ',';
    if (object) {
      append_json_string(out, text_of(value.children[2 * i]));
      out += ':';
    }
    append(out, value.children[object ? 2 * i + 1 : i]);
  }
  out += object ? '}' : ']';
}

void append(std::string& out, const Node& value) {
  switch (value.kind) {
    case JsonKind::null:
      out += "null";
      break;
    case JsonKind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case JsonKind::integer:
      out += value.large ? fmt::format_int(value.unsigned_integer).c_str()
                         : fmt::format_int(value.integer).c_str();
      break;
    case JsonKind::number:
      append_json_number(out, value.number);
      break;
    case JsonKind::string:
      append_json_string(out, text_of(value));
      break;
    case JsonKind::array:
    case JsonKind::object:
      append_children(out, value);
      break;
  }
}

}  // namespace

struct JsonDocument::Body {
  std::vector<JsonNode> nodes;
  std::unique_ptr<char[]> text;
  JsonNode root;

  void resolve(JsonNode& value) const {
    if (value.kind == JsonKind::array || value.kind == JsonKind::object)
      value.children = nodes.data() + value.first;
  }
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
  constexpr std::size_t kUsualNodes = 24;
  auto body = std::make_unique<Body>();
  body->nodes.reserve(kUsualNodes);
  body->text = std::make_unique_for_overwrite<char[]>(text.size() + 1);
  json::parse_options options;
  options.max_depth = limits.depth;
  json::basic_parser<Builder> parser(options, body->nodes, body->text.get(), limits.unique_keys);
  json::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error && consumed != text.size()) error = json::error::extra_data;
  if (const auto& path = parser.handler().repeated(); !path.empty()) {
    return fail(Code::malformed_json, fmt::format("{}: this name stands twice in its object", path),
                {{"path", path}});
  }
  if (error == json::error::too_deep) {
    return fail(Code::too_deep, fmt::format("JSON is nested more than {} levels deep", limits.depth),
                {{"limit", std::to_string(limits.depth)}, {"offset", std::to_string(consumed)}});
  }
  if (error) {
    return fail(Code::malformed_json, fmt::format("not valid JSON at byte {}: {}", consumed, error.message()),
                {{"offset", std::to_string(consumed)}});
  }
  body->root = parser.handler().take();
  for (auto& value : body->nodes) body->resolve(value);
  body->resolve(body->root);
  return JsonDocument(std::move(body));
}

bool is_json(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.bytes) return false;
  json::parse_options options;
  options.max_depth = limits.depth;
  json::basic_parser<Follower> parser(options);
  json::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  return !error && consumed == text.size();
}

JsonValue JsonDocument::root() const noexcept { return JsonValue(&body_->root); }

JsonKind JsonValue::kind() const noexcept { return node(node_).kind; }

std::string_view JsonValue::kind_name() const noexcept {
  constexpr std::array<std::string_view, 7> kNames{"null",   "boolean", "integer", "number",
                                                   "string", "array",   "object"};
  return kNames[static_cast<std::size_t>(kind())];
}

std::optional<bool> JsonValue::as_boolean() const noexcept {
  if (kind() != JsonKind::boolean) return std::nullopt;
  return node(node_).boolean;
}

std::optional<std::int64_t> JsonValue::as_integer() const noexcept {
  if (kind() != JsonKind::integer || node(node_).large) return std::nullopt;
  return node(node_).integer;
}

std::optional<std::uint64_t> JsonValue::as_unsigned() const noexcept {
  const auto& value = node(node_);
  if (value.kind != JsonKind::integer) return std::nullopt;
  if (value.large) return value.unsigned_integer;
  if (value.integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value.integer);
}

std::optional<double> JsonValue::as_number() const noexcept {
  const auto& value = node(node_);
  if (value.kind == JsonKind::number)
    return std::isfinite(value.number) ? std::optional(value.number) : std::nullopt;
  if (value.kind != JsonKind::integer) return std::nullopt;
  return value.large ? static_cast<double>(value.unsigned_integer) : static_cast<double>(value.integer);
}

std::optional<std::string_view> JsonValue::as_string() const noexcept {
  if (kind() != JsonKind::string) return std::nullopt;
  return text_of(node(node_));
}

std::size_t JsonValue::size() const noexcept {
  return kind() == JsonKind::array || kind() == JsonKind::object ? node(node_).size : 0;
}

JsonValue JsonValue::at(std::size_t index) const noexcept {
  PAWL_ASSERT(index < size(), "a JSON index is within its container", index, size());
  return JsonValue(&node(node_).children[kind() == JsonKind::object ? 2 * index + 1 : index]);
}

std::string_view JsonValue::key_at(std::size_t index) const noexcept {
  PAWL_ASSERT(kind() == JsonKind::object && index < size(), "a JSON member index is within its object",
              index);
  return text_of(node(node_).children[2 * index]);
}

std::optional<JsonValue> JsonValue::find(std::string_view key, std::size_t likely) const noexcept {
  const auto& object = node(node_);
  if (object.kind != JsonKind::object) return std::nullopt;
  const auto is = [&](std::size_t i) { return text_of(object.children[2 * i]) == key; };
  if (likely < object.size && is(likely)) return at(likely);
  for (std::size_t i = 0; i < object.size; ++i) {
    if (is(i)) return at(i);
  }
  return std::nullopt;
}

std::string JsonValue::to_text() const {
  std::string out;
  out.reserve(kUsualText);
  append(out, node(node_));
  return out;
}

}  // namespace pawl
