// SPDX-License-Identifier: Apache-2.0
#include "kernel/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pawl {
namespace {

/// The length of the sequence that begins at `text[0]`, or 0 where it is malformed.
std::size_t sequence_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const auto second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_high = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  // Most text is ASCII: look at eight bytes at once as long as it is.
  for (std::uint64_t word = 0; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
  }
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string out;
  while (!text.empty()) {
    if (out.size() >= kMost) return out + "…";
    const auto length = sequence_length(text);
    out += length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace pawl
