// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>

#include "kernel/code_point.hpp"

namespace pawl::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

/// Marks that take no column of their own.
constexpr auto kZero = std::to_array<Range>({{0x0300, 0x036F},
                                             {0x0483, 0x0489},
                                             {0x0591, 0x05BD},
                                             {0x064B, 0x065F},
                                             {0x0E31, 0x0E31},
                                             {0x0E34, 0x0E3A},
                                             {0x1AB0, 0x1AFF},
                                             {0x1DC0, 0x1DFF},
                                             {0x200B, 0x200D},
                                             {0x20D0, 0x20FF},
                                             {0xFE00, 0xFE0F},
                                             {0xFE20, 0xFE2F},
                                             {0xFEFF, 0xFEFF},
                                             {0xE0100, 0xE01EF}});
/// East Asian wide characters and pictures: two columns.
constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115F},
                                             {0x231A, 0x231B},
                                             {0x2E80, 0x303E},
                                             {0x3041, 0x33FF},
                                             {0x3400, 0x4DBF},
                                             {0x4E00, 0x9FFF},
                                             {0xA000, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x1F64F},
                                             {0x1F680, 0x1F6FF},
                                             {0x1F900, 0x1F9FF},
                                             {0x20000, 0x3FFFD}});
/// What controls a terminal or turns the direction of writing.
constexpr auto kSteering = std::to_array<Range>({{0x0000, 0x001F},
                                                 {0x007F, 0x009F},
                                                 {0x061C, 0x061C},
                                                 {0x200E, 0x200F},
                                                 {0x2028, 0x202E},
                                                 {0x2066, 0x2069}});

template <std::size_t N>
bool among(const std::array<Range, N>& ranges, char32_t point) {
  return std::ranges::any_of(ranges,
                             [&](Range range) { return point >= range.first && point <= range.last; });
}

struct Decoded {
  std::optional<char32_t> point;  // nullopt if the byte is not UTF-8
  std::size_t bytes = 1;
};

Decoded decode_at(std::string_view text, std::size_t at) {
  const auto found = first_code_point(text.substr(at));
  return found.size == 0 ? Decoded{} : Decoded{.point = found.value, .bytes = found.size};
}

std::size_t width_of(Decoded decoded) {
  if (!decoded.point) return 1;
  return among(kZero, *decoded.point) ? 0 : among(kWide, *decoded.point) ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const auto decoded = decode_at(text, i);
    if (!decoded.point || *decoded.point < 0x80) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool plain = decoded.point && !among(kSteering, *decoded.point);
      shown += plain ? std::string(1, text[i]) : fmt::format("\\x{:02x}", byte);
    } else if (*decoded.point < 0xA0) {
      shown += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(*decoded.point));
    } else if (among(kSteering, *decoded.point)) {
      shown += fmt::format("\\u{{{:04x}}}", static_cast<std::uint32_t>(*decoded.point));
    } else {
      shown += text.substr(i, decoded.bytes);
    }
    i += decoded.bytes;
  }
  return shown;
}

std::string inert_json(std::string_view json) {
  std::string made;
  made.reserve(json.size());
  for (std::size_t i = 0; i < json.size();) {
    const auto decoded = decode_at(json, i);
    if (decoded.point && *decoded.point >= 0x7F && among(kSteering, *decoded.point)) {
      made += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(*decoded.point));
    } else {
      made += json.substr(i, decoded.bytes);
    }
    i += decoded.bytes;
  }
  return made;
}

std::size_t columns(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto decoded = decode_at(text, i);
    width += width_of(decoded);
    i += decoded.bytes;
  }
  return width;
}

std::string clip(std::string_view text, std::size_t most) {
  if (columns(text) <= most) return std::string(text);
  if (most == 0) return {};
  std::size_t width = 1;  // the mark at the end
  std::size_t i = 0;
  while (i < text.size()) {
    const auto decoded = decode_at(text, i);
    if (width + width_of(decoded) > most) break;
    width += width_of(decoded);
    i += decoded.bytes;
  }
  return std::string(text.substr(0, i)) + "…";
}

std::string relative(Time time, Time now) {
  using namespace std::chrono;
  const auto distance = duration_cast<seconds>(time < now ? now - time : time - now).count();
  if (distance == 0) return "now";
  constexpr std::array<std::pair<std::int64_t, char>, 4> kUnits{
      {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  const auto unit = *std::ranges::find_if(kUnits, [&](const auto& entry) { return distance >= entry.first; });
  const auto shown = fmt::format("{}{}", distance / unit.first, unit.second);
  return time < now ? shown + " ago" : "in " + shown;
}

std::string to_seconds(std::string_view time) {
  const auto point = time.find('.');
  return point == std::string_view::npos ? std::string(time) : std::string(time.substr(0, point)) + "Z";
}

std::string grouped(std::int64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string pretty(JsonValue value, std::size_t indent) {
  const bool object = value.kind() == JsonKind::object;
  if ((!object && value.kind() != JsonKind::array) || value.size() == 0) return printable(value.to_text());
  const std::string margin(indent + 2, ' ');
  std::string text(1, object ? '{' : '[');
  for (std::size_t i = 0; i < value.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    text += margin;
    if (object) text += fmt::format("\"{}\": ", printable(value.key_at(i)));
    text += pretty(value.at(i), indent + 2);
  }
  return text + "\n" + std::string(indent, ' ') + (object ? '}' : ']');
}

}  // namespace pawl::cli
