// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The number of a volume, which is text in requests and answers: "17", and "" for none. A number is read as
/// well: runs of earlier versions have it.

#include <charconv>
#include <cstdint>
#include <string>

#include "pawl/codec.hpp"

namespace pawl::images {

struct VolumeId {
  std::uint32_t number = 0;
  constexpr VolumeId() = default;
  constexpr explicit(false) VolumeId(std::uint32_t from) : number(from) {}
  constexpr operator std::uint32_t() const { return number; }  // NOLINT(google-explicit-constructor)
};

inline std::string to_text(VolumeId id) { return id.number == 0 ? std::string() : std::to_string(id.number); }

}  // namespace pawl::images

namespace pawl {

template <>
struct Codec<images::VolumeId> {
  static void write(JsonWriter& out, images::VolumeId id) { out.string(to_text(id)); }
  static bool read(JsonValue in, images::VolumeId& out, DecodeFailure& why) {
    const auto text = in.as_string();
    if (!text) return Codec<std::uint32_t>::read(in, out.number, why);
    out.number = 0;
    const auto* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, out.number);
    if (text->empty() || (read.ec == std::errc{} && read.ptr == end)) return true;
    return why.refuse("the number of a volume as text", in);
  }
};

}  // namespace pawl
