// SPDX-License-Identifier: Apache-2.0
#pragma once

/// JSON text in, JSON text out: the narrow waist under `pawl/codec.hpp`. Most code wants `encode` and
/// `decode` from there; use these directly for values whose shape is known only at run time.
///
///     auto document = pawl::JsonDocument::parse(R"({"items": [1, 2]})").value();
///     auto items = document.root().find("items");
///     items->at(1).as_integer();                                  // 2
///
///     pawl::JsonWriter out;
///     out.begin_object().key("ok").boolean(true).end_object();
///     out.take().value();                                        // {"ok":true}

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl {

/// Limits on JSON that comes from outside.
struct JsonLimits {
  std::size_t depth = 32;                    ///< objects and arrays inside each other
  std::size_t bytes = std::size_t{1} << 20;  ///< length of the text
  /// A name that stands twice in an object is refused; otherwise its last value counts.
  bool unique_keys = false;
};

enum class JsonKind : std::uint8_t { null, boolean, integer, number, string, array, object };

/// A view of one value in a document; valid as long as the document. Cheap to copy. Safe to read
/// concurrently.
class JsonValue {
 public:
  JsonKind kind() const noexcept;
  /// "null", "boolean", "integer", "number", "string", "array" or "object".
  std::string_view kind_name() const noexcept;

  /// Each returns nothing where the value is of another kind or out of range.
  std::optional<bool> as_boolean() const noexcept;
  std::optional<std::int64_t> as_integer() const noexcept;
  std::optional<std::uint64_t> as_unsigned() const noexcept;
  std::optional<double> as_number() const noexcept;
  std::optional<std::string_view> as_string() const noexcept;

  /// Elements of an array, members of an object, otherwise 0.
  std::size_t size() const noexcept;
  /// Element `index` of an array or the value of member `index` of an object; `index < size()`.
  JsonValue at(std::size_t index) const noexcept;
  /// The name of member `index` of an object; `index < size()`.
  std::string_view key_at(std::size_t index) const noexcept;
  /// The member of this name of an object; found at once where it is member `likely`.
  std::optional<JsonValue> find(std::string_view key, std::size_t likely = 0) const noexcept;

  /// The value as compact JSON text.
  std::string to_text() const;

 private:
  friend class JsonDocument;
  explicit JsonValue(const void* node) noexcept : node_(node) {}
  const void* node_;
};

/// A parsed text. Movable; reading is safe concurrently.
class JsonDocument {
 public:
  /// Errors: `malformed_json` (with the offset, or the path of a name that stands twice), `too_deep`,
  /// `too_large`.
  static Result<JsonDocument> parse(std::string_view text, JsonLimits limits = {});

  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;
  ~JsonDocument();

  JsonValue root() const noexcept;

 private:
  struct Body;
  explicit JsonDocument(std::unique_ptr<Body> body) noexcept;
  std::unique_ptr<Body> body_;
};

/// Writes compact JSON. Calls must come in the order of the text; commas are added. What is nested more
/// deeply than `JsonLimits` allows by default is refused, so that what was written can be read. Not
/// thread-safe.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  /// A key that is known to need no escapes, such as a C++ identifier.
  JsonWriter& field(std::string_view identifier);
  JsonWriter& null();
  JsonWriter& boolean(bool value);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& integer(std::uint64_t value);
  /// NaN and infinity have no JSON form: an error.
  JsonWriter& number(double value);
  /// Text that is not UTF-8 has no JSON form: an error.
  JsonWriter& string(std::string_view text);
  /// Inserts text that claims to be JSON: an error where it is not, or is nested too deeply.
  JsonWriter& embed(std::string_view json);
  /// Inserts text that a writer has made; it is not checked again.
  JsonWriter& splice(std::string_view json) { return raw(json); }

  /// Notes that a value cannot be written; the first one decides what `take` returns.
  void refuse(std::string reason);

  /// The text. Error: `unencodable`, with the end of what was written before the value.
  Result<std::string> take();

 private:
  void separate();
  void enter(char bracket);
  void leave(char bracket);
  JsonWriter& raw(std::string_view json);

  std::string text_;
  std::size_t depth_ = 0;
  bool need_comma_ = false;
  std::optional<std::string> refusal_;
};

}  // namespace pawl
