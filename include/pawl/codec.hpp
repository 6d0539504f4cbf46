// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Plain structs to JSON and back, without macros.
///
///     struct Item { std::string name; pawl::Required<int> qty; };
///     struct Order { std::string id; std::vector<Item> items; std::optional<std::string> note; };
///
///     pawl::encode(Order{.id = "o-1"}).value();      // {"id":"o-1","items":[]}
///     pawl::decode<Order>(R"({"items":[{"qty":"x"}]})");   // $.items[0].qty: expected integer, got string
///
/// Rules: an absent field keeps its default member initialiser; an absent `Required<T>` is an error; unknown
/// fields are ignored (`decode_strictly` refuses them); an empty optional is not written; null decodes to an
/// empty optional. Enums go by name, times as RFC 3339 text, durations as text such as "1.5s". Aggregates may
/// have up to 100 fields, but no base classes, C arrays, pointers or views. Other types: specialise
/// `pawl::Codec<T>`.

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pawl/error.hpp"
#include "pawl/json.hpp"
#include "pawl/names.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// A field that must be present when decoding. Reads like a T.
template <class T>
struct Required {
  T value{};
  constexpr Required() = default;
  constexpr explicit(false) Required(T from) : value(std::move(from)) {}
  template <class U>
    requires(std::constructible_from<T, U> && !std::same_as<std::remove_cvref_t<U>, Required>)
  constexpr explicit(false) Required(U&& from) : value(std::forward<U>(from)) {}
  constexpr operator const T&() const { return value; }  // NOLINT(google-explicit-constructor)
  constexpr const T& operator*() const { return value; }
  constexpr T& operator*() { return value; }
  constexpr const T* operator->() const { return &value; }
  constexpr T* operator->() { return &value; }
  bool operator==(const Required&) const = default;
};

/// JSON text of any shape, kept as it is.
struct Json {
  std::string text = "null";
  bool operator==(const Json&) const = default;
};

/// Why decoding failed and where; frames put their part of the path in front on the way out.
struct DecodeFailure {
  bool refuses_unknown_fields = false;  ///< set before decoding: a field that its struct lacks is an error
  Code code = Code::wrong_type;
  std::string path;
  std::string message;

  bool refuse(std::string_view expected, const JsonValue& got);
  bool refuse(Code why, std::string text);
  /// Refuses the first field of the object `in` that is none of `known`, with the nearest of these.
  bool check_fields(const JsonValue& in, std::span<const std::string_view> known);
  bool in_field(std::string_view name);
  bool in_element(std::size_t index);
  Error to_error() const;
};

/// How a T is written and read. Specialise it for own types:
///     static void write(JsonWriter& out, const T& value);
///     static bool read(JsonValue in, T& out, DecodeFailure& why);   // false: why.refuse(…) was called
template <class T>
struct Codec;

/// The value as compact JSON. Error: `unencodable`.
template <class T>
Result<std::string> encode(const T& value) {
  JsonWriter out;
  Codec<T>::write(out, value);
  return out.take();
}

/// Reads into `out`; on an error `out` is partly written. For `decode`, which see.
template <class T>
Result<void> decode_into(JsonValue in, T& out) {
  DecodeFailure why;
  if (!Codec<T>::read(in, out, why)) return fail(why.to_error());
  return {};
}

/// The value from JSON text. Errors: `malformed_json`, `too_deep`, `too_large`, `wrong_type`,
/// `missing_field`, with the path of the value in the message and in the field `path`.
template <class T>
Result<T> decode(std::string_view text, JsonLimits limits = {}) {
  PAWL_TRY(const auto document, JsonDocument::parse(text, limits));
  T value{};
  PAWL_CHECK(decode_into(document.root(), value));
  return value;
}

/// The same for what people write, where a field that is spelled wrong must not be lost: a field that its
/// struct lacks is an error, at any depth. Error: also `unknown_name`, with the nearest name that there is.
template <class T>
Result<T> decode_strictly(std::string_view text, JsonLimits limits = {}) {
  PAWL_TRY(const auto document, JsonDocument::parse(text, limits));
  T value{};
  DecodeFailure why{.refuses_unknown_fields = true};
  if (!Codec<T>::read(document.root(), value, why)) return fail(why.to_error());
  return value;
}

}  // namespace pawl

#include "pawl/detail/codec_struct.hpp"
#include "pawl/detail/codec_types.hpp"
