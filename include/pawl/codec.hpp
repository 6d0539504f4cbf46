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
/// fields are ignored; an empty optional is not written; null decodes to an empty optional. Enums go by name,
/// times as RFC 3339 text, durations as text such as "1.5s". Aggregates may have up to 100 fields, but no
/// base classes, C arrays, pointers or views. Other types: specialise `pawl::Codec<T>`.

#include <array>
#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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
  constexpr Required(T from) : value(std::move(from)) {}
  template <class U>
    requires(std::constructible_from<T, U> && !std::same_as<std::remove_cvref_t<U>, Required>)
  constexpr Required(U&& from) : value(std::forward<U>(from)) {}
  constexpr operator const T&() const { return value; }
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
  Code code = Code::wrong_type;
  std::string path;
  std::string message;

  bool refuse(std::string_view expected, const JsonValue& got);
  bool refuse(Code why, std::string text);
  bool in_field(std::string_view name);
  bool in_element(std::size_t index);
  Error to_error() const;
};

/// How a T is written and read. Specialise it for own types:
///     static void write(JsonWriter& out, const T& value);
///     static bool read(JsonValue in, T& out, DecodeFailure& why);   // false: why.refuse(…) was called
template <class T>
struct Codec;

namespace detail {

template <class T>
inline constexpr bool always_false = false;

// An object of static storage that is never initialised: only addresses of its fields are taken.
template <class T>
union FieldProbe {
  char none;
  T value;
  constexpr FieldProbe() : none{} {}
  constexpr ~FieldProbe() {}
};
template <class T>
inline FieldProbe<T> field_probe{};

template <class T, std::size_t I>
constexpr auto field_pointer() {
  return &boost::pfr::get<I>(field_probe<T>.value);
}

/// The field's name: the identifier at the end of "&….value.T::name)".
template <class T, std::size_t I>
constexpr std::string_view field_name() {
  auto text = pretty_value<field_pointer<T, I>()>();
  if (text.ends_with(')')) text.remove_suffix(1);
  const auto begin = text.find_last_of(".:");
  return text.substr(begin + 1);
}

template <class T>
inline constexpr auto field_names = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{field_name<T, I>()...};
}(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_required = false;
template <class T>
inline constexpr bool is_required<Required<T>> = true;

template <class T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T>;

/// Stands for a value of any type where it is only asked whether an initialisation is possible.
struct AnyValue {
  template <class U>
  operator U() const;
};
template <std::size_t>
using AnyAt = AnyValue;

/// Whether a T can be made of one value in braces with plain ones before and after it.
template <class T, std::size_t... Before, std::size_t... After>
constexpr bool takes(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{AnyAt<Before>{}..., {AnyValue{}}, AnyAt<After>{}...}; };
}

/// Whether a field is a C array: one value in braces is enough for it, but without braces it takes several, so
/// that PFR counts its elements as fields and fails less clearly.
template <class T>
constexpr bool has_c_array() {
  if constexpr (!PlainStruct<T>) {
    return false;
  } else {
    constexpr auto fields = boost::pfr::tuple_size_v<T>;
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return requires { T{AnyAt<I>{}...}; } &&
             ((takes<T>(std::make_index_sequence<I>{}, std::index_sequence<>{}) &&
               !takes<T>(std::make_index_sequence<I>{}, std::make_index_sequence<fields - I - 1>{})) ||
              ...);
    }(std::make_index_sequence<fields>{});
  }
}

bool read_integer(JsonValue in, std::int64_t low, std::int64_t high, std::int64_t& out, DecodeFailure& why);
bool read_unsigned(JsonValue in, std::uint64_t high, std::uint64_t& out, DecodeFailure& why);
bool read_number(JsonValue in, double most, double& out, DecodeFailure& why);
bool refuse_enum(JsonValue in, const std::string_view* names, std::size_t count, DecodeFailure& why);

}  // namespace detail

/// Aggregates.
template <class T>
struct Codec {
  // In the class, not in its functions: the compiler stops here, before PFR fails less clearly.
  static_assert(!std::is_pointer_v<T>, "a pointer cannot be stored: hold the value itself");
  static_assert(!std::is_same_v<T, std::string_view>,
                "a string_view would dangle after decoding: use std::string");
  static_assert(std::is_pointer_v<T> || std::is_same_v<T, std::string_view> || detail::PlainStruct<T>,
                "this type is not a plain struct: specialise pawl::Codec for it");
  static_assert(!detail::has_c_array<T>(), "a C array cannot be stored: use std::array or std::vector");

  static void write(JsonWriter& out, const T& value) {
    out.begin_object();
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (write_field(out, detail::field_names<T>[I], boost::pfr::get<I>(value)), ...);
    }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});
    out.end_object();
  }

  static bool read(JsonValue in, T& out, DecodeFailure& why) {
    if (in.kind() != JsonKind::object) return why.refuse("object", in);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (read_field(in, detail::field_names<T>[I], boost::pfr::get<I>(out), why) && ...);
    }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});
  }

 private:
  template <class F>
  static void write_field(JsonWriter& out, std::string_view name, const F& field) {
    static_assert(!std::is_array_v<F>, "a C array cannot be stored: use std::array or std::vector");
    if constexpr (detail::is_optional<F>) {
      if (!field) return;
    }
    out.key(name);
    Codec<F>::write(out, field);
  }

  template <class F>
  static bool read_field(JsonValue in, std::string_view name, F& field, DecodeFailure& why) {
    const auto member = in.find(name);
    if (member) return Codec<F>::read(*member, field, why) || why.in_field(name);
    if constexpr (detail::is_required<F>) {
      why.refuse(Code::missing_field, "is required");
      return why.in_field(name);
    }
    return true;
  }
};

template <>
struct Codec<bool> {
  static void write(JsonWriter& out, bool value) { out.boolean(value); }
  static bool read(JsonValue in, bool& out, DecodeFailure& why) {
    const auto value = in.as_boolean();
    if (!value) return why.refuse("boolean", in);
    out = *value;
    return true;
  }
};

template <std::signed_integral T>
struct Codec<T> {
  static void write(JsonWriter& out, T value) { out.integer(std::int64_t{value}); }
  static bool read(JsonValue in, T& out, DecodeFailure& why) {
    std::int64_t value = 0;
    if (!detail::read_integer(in, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value, why)) {
      return false;
    }
    out = static_cast<T>(value);
    return true;
  }
};

template <std::unsigned_integral T>
struct Codec<T> {
  static void write(JsonWriter& out, T value) { out.integer(std::uint64_t{value}); }
  static bool read(JsonValue in, T& out, DecodeFailure& why) {
    std::uint64_t value = 0;
    if (!detail::read_unsigned(in, std::numeric_limits<T>::max(), value, why)) return false;
    out = static_cast<T>(value);
    return true;
  }
};

template <std::floating_point T>
  requires(sizeof(T) <= sizeof(double))
struct Codec<T> {
  static void write(JsonWriter& out, T value) { out.number(value); }
  static bool read(JsonValue in, T& out, DecodeFailure& why) {
    double value = 0;
    if (!detail::read_number(in, double{std::numeric_limits<T>::max()}, value, why)) return false;
    out = static_cast<T>(value);
    return true;
  }
};

template <>
struct Codec<std::string> {
  static void write(JsonWriter& out, const std::string& value) { out.string(value); }
  static bool read(JsonValue in, std::string& out, DecodeFailure& why) {
    const auto value = in.as_string();
    if (!value) return why.refuse("string", in);
    out = *value;
    return true;
  }
};

template <ScopedEnum E>
struct Codec<E> {
  static void write(JsonWriter& out, E value) {
    const auto name = enum_name(value);
    if (name.empty()) out.refuse("an enum value has no name");
    out.string(name);
  }
  static bool read(JsonValue in, E& out, DecodeFailure& why) {
    const auto text = in.as_string();
    const auto value = text ? enum_value<E>(*text) : std::nullopt;
    if (!value) {
      std::array<std::string_view, enum_values<E>.size()> names{};
      for (std::size_t i = 0; i < names.size(); ++i) names[i] = enum_name(enum_values<E>[i]);
      return detail::refuse_enum(in, names.data(), names.size(), why);
    }
    out = *value;
    return true;
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static void write(JsonWriter& out, const std::optional<T>& value) {
    if (value) {
      Codec<T>::write(out, *value);
    } else {
      out.null();
    }
  }
  static bool read(JsonValue in, std::optional<T>& out, DecodeFailure& why) {
    out.reset();
    if (in.kind() == JsonKind::null) return true;
    return Codec<T>::read(in, out.emplace(), why);
  }
};

template <class T>
struct Codec<Required<T>> {
  static void write(JsonWriter& out, const Required<T>& value) { Codec<T>::write(out, value.value); }
  static bool read(JsonValue in, Required<T>& out, DecodeFailure& why) {
    return Codec<T>::read(in, out.value, why);
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static_assert(!std::is_same_v<T, bool>,
                "std::vector<bool> has no real elements: use std::vector<char> or an enum");
  static void write(JsonWriter& out, const std::vector<T>& value) {
    out.begin_array();
    for (const auto& element : value) Codec<T>::write(out, element);
    out.end_array();
  }
  static bool read(JsonValue in, std::vector<T>& out, DecodeFailure& why) {
    if (in.kind() != JsonKind::array) return why.refuse("array", in);
    out.clear();
    out.resize(in.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!Codec<T>::read(in.at(i), out[i], why)) return why.in_element(i);
    }
    return true;
  }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static void write(JsonWriter& out, const std::array<T, N>& value) {
    out.begin_array();
    for (const auto& element : value) Codec<T>::write(out, element);
    out.end_array();
  }
  static bool read(JsonValue in, std::array<T, N>& out, DecodeFailure& why) {
    if (in.kind() != JsonKind::array) return why.refuse("array", in);
    if (in.size() != N) {
      return why.refuse(Code::wrong_type, "expected an array of " + std::to_string(N) + " elements, got " +
                                              std::to_string(in.size()));
    }
    for (std::size_t i = 0; i < N; ++i) {
      if (!Codec<T>::read(in.at(i), out[i], why)) return why.in_element(i);
    }
    return true;
  }
};

template <class T>
struct Codec<std::map<std::string, T>> {
  static void write(JsonWriter& out, const std::map<std::string, T>& value) {
    out.begin_object();
    for (const auto& [name, element] : value) {
      out.key(name);
      Codec<T>::write(out, element);
    }
    out.end_object();
  }
  static bool read(JsonValue in, std::map<std::string, T>& out, DecodeFailure& why) {
    if (in.kind() != JsonKind::object) return why.refuse("object", in);
    out.clear();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto name = in.key_at(i);
      if (!Codec<T>::read(in.at(i), out[std::string(name)], why)) return why.in_field(name);
    }
    return true;
  }
};

template <>
struct Codec<Json> {
  static void write(JsonWriter& out, const Json& value) { out.embed(value.text); }
  static bool read(JsonValue in, Json& out, DecodeFailure& why);
};

template <>
struct Codec<Time> {
  static void write(JsonWriter& out, Time value) { out.string(to_string(value)); }
  static bool read(JsonValue in, Time& out, DecodeFailure& why);
};

template <>
struct Codec<Duration> {
  static void write(JsonWriter& out, Duration value) { out.string(to_string(value)); }
  static bool read(JsonValue in, Duration& out, DecodeFailure& why);
};

/// Coarser durations; a stored value that is finer than the field's unit is refused.
template <class Rep, class Period>
  requires(!std::same_as<std::chrono::duration<Rep, Period>, Duration>)
struct Codec<std::chrono::duration<Rep, Period>> {
  using T = std::chrono::duration<Rep, Period>;
  static void write(JsonWriter& out, T value) { Codec<Duration>::write(out, value); }
  static bool read(JsonValue in, T& out, DecodeFailure& why) {
    Duration fine{};
    if (!Codec<Duration>::read(in, fine, why)) return false;
    out = std::chrono::duration_cast<T>(fine);
    if (out != fine)
      return why.refuse(Code::wrong_type, "expected a duration in the field's unit or coarser");
    return true;
  }
};

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

}  // namespace pawl
