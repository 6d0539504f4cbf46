// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading and writing JSON text; `pawl/codec.hpp` is built on this. Most code should use its `encode` and
/// `decode`; use this for values whose structure is known only at run time.
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

/// Limits on JSON input.
struct JsonLimits {
  std::size_t depth = 32;                    ///< nesting of objects and arrays
  std::size_t bytes = std::size_t{1} << 20;  ///< length of the text
  /// If set, a duplicate name in an object is an error; otherwise the last value counts.
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

  /// Each returns nothing if the value is of another kind or out of range.
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
  /// The member of this name of an object. Needs no search if it is member `likely`.
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
  /// Errors: `malformed_json` (with the offset, or the path of a duplicate name), `too_deep`,
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

/// Writes compact JSON. Calls must come in the order of the text; commas are added. Nesting
/// deeper than the default of `JsonLimits` is refused, so that the text can be read again. Not
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
  /// Inserts JSON text; an error if it is not JSON or nested too deeply.
  JsonWriter& embed(std::string_view json);
  /// Inserts the text of another writer without checking it.
  JsonWriter& splice(std::string_view json) { return raw(json); }

  /// Notes that a value cannot be written; the first one decides what `take` returns.
  void refuse(std::string reason);

  /// The text. Error: `unencodable`, with the last part of the text before the value.
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
