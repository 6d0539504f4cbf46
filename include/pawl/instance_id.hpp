// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The 16-byte id of an instance: the first bytes of SHA-256 over (machine, key).
///
///     const auto id = pawl::instance_id("door", "front");
///     id.to_string();                                       // 32 hexadecimal digits

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl {

/// A value; ordered and hashable.
struct InstanceId {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const InstanceId&) const = default;
  bool operator==(const InstanceId& other) const {
    return std::memcmp(bytes.data(), other.bytes.data(), sizeof bytes) == 0;
  }
  std::string to_string() const;
};

/// The id of (machine, key). Uses the machine's oldest stored name, so that a rename keeps ids.
InstanceId instance_id(std::string_view machine, std::string_view key);

/// Parses what `InstanceId::to_string` writes.
Result<InstanceId> parse_instance_id(std::string_view text);

/// The first 16 bytes of SHA-256.
std::array<std::uint8_t, 16> digest16(std::string_view bytes);

}  // namespace pawl

template <>
struct std::hash<pawl::InstanceId> {
  std::size_t operator()(const pawl::InstanceId& id) const noexcept {
    std::size_t word = 0;  // the bytes are a cryptographic hash already
    std::memcpy(&word, id.bytes.data(), sizeof word);
    return word;
  }
};
