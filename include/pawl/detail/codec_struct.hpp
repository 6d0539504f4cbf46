// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How plain structs are written and read: their fields by name. Included by pawl/codec.hpp; not for users.

#include <array>
#include <boost/pfr/core.hpp>
#include <boost/pfr/tuple_size.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pawl/codec.hpp"

namespace pawl {
namespace detail {

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
  operator U() const {  // NOLINT(google-explicit-constructor): an initialisation converts
    std::unreachable();
  }
};
template <std::size_t>
using AnyAt = AnyValue;

/// Whether a T can be made of one value in braces with plain ones before and after it.
template <class T, std::size_t... Before, std::size_t... After>
constexpr bool takes(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{AnyAt<Before>{}..., {AnyValue{}}, AnyAt<After>{}...}; };
}

/// Whether a field is a C array: one value in braces is enough for it, but without braces it takes several,
/// so that PFR counts its elements as fields and fails less clearly.
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
    if (why.refuses_unknown_fields && !why.check_fields(in, detail::field_names<T>)) return false;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (read_field(in, I, boost::pfr::get<I>(out), why) && ...);
    }(std::make_index_sequence<boost::pfr::tuple_size_v<T>>{});
  }

 private:
  template <class F>
  static void write_field(JsonWriter& out, std::string_view name, const F& field) {
    static_assert(!std::is_array_v<F>, "a C array cannot be stored: use std::array or std::vector");
    if constexpr (detail::is_optional<F>) {
      if (!field) return;
    }
    out.field(name);
    Codec<F>::write(out, field);
  }

  template <class F>
  static bool read_field(JsonValue in, std::size_t index, F& field, DecodeFailure& why) {
    const auto name = detail::field_names<T>[index];
    const auto member = in.find(name, index);  // what was encoded here has its fields in this order
    if (member) return Codec<F>::read(*member, field, why) || why.in_field(name);
    if constexpr (detail::is_required<F>) {
      why.refuse(Code::missing_field, "is required");
      return why.in_field(name);
    }
    return true;
  }
};

}  // namespace pawl
