// SPDX-License-Identifier: Apache-2.0
#include "kernel/code_point.hpp"

#include <algorithm>
#include <array>

#include "kernel/utf8.hpp"

namespace pawl {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

constexpr auto kFormat = std::to_array<Range>({
    {0x00AD, 0x00AD},   {0x0600, 0x0605},   {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},
    {0x0890, 0x0891},   {0x08E2, 0x08E2},   {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x2064},   {0x2066, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
    {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0001, 0xE0001},
    {0xE0020, 0xE007F},
});

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (text.size() < size || !is_utf8(text.substr(0, size))) return {};
  char32_t value = first & (0x7FU >> size);
  for (const char c : text.substr(1, size - 1)) value = value << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return {value, size};
}

bool is_format_character(char32_t value) {
  return std::ranges::any_of(kFormat,
                             [&](Range range) { return value >= range.first && value <= range.last; });
}

}  // namespace pawl
