// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of enumerators and types, read by the compiler from the source: no macros, no registration.
///
///     enum class Door { closed, open };
///     static_assert(pawl::enum_name(Door::open) == "open");
///     static_assert(pawl::enum_value<Door>("closed") == Door::closed);
///     static_assert(pawl::type_name<std::string_view>().starts_with("basic_string_view"));
///
/// Enumerators must have values from 0 to `kEnumLimit - 1`. An enumeration inside a class may have its names
/// computed instead: by a friend `enumerators_of(E)` that returns them in the order of their values, from 0
/// on. Everything here is constexpr and thread-safe.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pawl {

/// Enumerators with values from 0 up to this one (exclusive) are found.
inline constexpr std::size_t kEnumLimit = 128;

/// Text as a template argument.
template <std::size_t N>
struct FixedString {
  char text[N]{};
  constexpr explicit(false) FixedString(const char (&from)[N]) { std::copy_n(from, N, text); }
  constexpr explicit FixedString(std::string_view from) { std::copy_n(from.data(), N - 1, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }
  constexpr operator std::string_view() const { return view(); }  // NOLINT(google-explicit-constructor)
};

/// Scoped enumerations only: every value of the underlying type is valid for them.
template <class E>
concept ScopedEnum = std::is_enum_v<E> && !std::is_convertible_v<E, std::underlying_type_t<E>>;

namespace detail {

constexpr bool is_identifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text.front())) return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// What stands behind "<name> = " in a __PRETTY_FUNCTION__. g++ appends "; std::string_view = …" to it.
constexpr std::string_view pretty_argument(std::string_view pretty, std::string_view name) {
  const auto begin = pretty.find(name) + name.size();
  const auto end = std::min(pretty.rfind(']'), pretty.find("; std::string_view"));
  return pretty.substr(begin, end - begin);
}

/// "a::b<c::d>::e" becomes "e": drops the qualification, but not inside template arguments.
constexpr std::string_view unqualified(std::string_view text) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '(') ++depth;
    if (text[i] == '>' || text[i] == ')') --depth;
    if (depth == 0 && text[i] == ':' && text[i + 1] == ':') begin = i + 2;
  }
  return text.substr(begin);
}

template <class PawlType>
constexpr std::string_view pretty_type() {
  return pretty_argument(__PRETTY_FUNCTION__, "PawlType = ");
}

template <auto PawlValue>
constexpr std::string_view pretty_value() {
  return pretty_argument(__PRETTY_FUNCTION__, "PawlValue = ");
}

/// The enumerator's name; empty if no enumerator has this value.
template <auto Value>
constexpr std::string_view enumerator_name() {
  const auto text = unqualified(pretty_value<Value>());
  return is_identifier(text) ? text : std::string_view{};
}

template <class E>
concept HasComputedNames = requires(E value) { enumerators_of(value); };

template <HasComputedNames E>
constexpr auto make_enum_names() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    constexpr auto computed = enumerators_of(E{});
    static_assert(computed.size() <= kEnumLimit);
    return std::array<std::string_view, kEnumLimit>{
        (I < computed.size() ? computed[I] : std::string_view{})...};
  }(std::make_index_sequence<kEnumLimit>{});
}

template <ScopedEnum E>
  requires(!HasComputedNames<E>)
constexpr auto make_enum_names() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, kEnumLimit>{enumerator_name<static_cast<E>(I)>()...};
  }(std::make_index_sequence<kEnumLimit>{});
}

/// Names by value; empty for a value without enumerator.
template <ScopedEnum E>
inline constexpr auto enum_names = make_enum_names<E>();

template <ScopedEnum E>
constexpr auto make_enum_values() {
  constexpr auto count = static_cast<std::size_t>(
      std::ranges::count_if(enum_names<E>, [](std::string_view name) { return !name.empty(); }));
  std::array<E, count> values{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < kEnumLimit; ++i) {
    if (!enum_names<E>[i].empty()) values[next++] = static_cast<E>(i);
  }
  return values;
}

}  // namespace detail

/// All enumerators in ascending order.
template <ScopedEnum E>
inline constexpr auto enum_values = detail::make_enum_values<E>();

/// The enumerator's name; empty for a value without one.
template <ScopedEnum E>
constexpr std::string_view enum_name(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kEnumLimit ? detail::enum_names<E>[index] : std::string_view{};
}

/// The enumerator of this name.
template <ScopedEnum E>
constexpr std::optional<E> enum_value(std::string_view name) {
  for (E value : enum_values<E>) {
    if (enum_name(value) == name) return value;
  }
  return std::nullopt;
}

/// The type's name without its namespaces and enclosing classes.
template <class T>
constexpr std::string_view type_name() {
  return detail::unqualified(detail::pretty_type<T>());
}

}  // namespace pawl
