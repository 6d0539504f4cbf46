// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the types of the standard library are written and read. Included by pawl/codec.hpp; not for users.

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pawl/codec.hpp"

namespace pawl {
namespace detail {

bool read_integer(JsonValue in, std::int64_t low, std::int64_t high, std::int64_t& out, DecodeFailure& why);
bool read_unsigned(JsonValue in, std::uint64_t high, std::uint64_t& out, DecodeFailure& why);
bool read_number(JsonValue in, double most, double& out, DecodeFailure& why);
bool refuse_enum(JsonValue in, const std::string_view* names, std::size_t count, DecodeFailure& why);

}  // namespace detail

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

}  // namespace pawl
