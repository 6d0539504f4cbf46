// SPDX-License-Identifier: Apache-2.0
#include "kernel/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace pawl {

namespace {

/// Whether any of eight bytes needs an escape: a control character, a quote or a backslash. Each expression
/// sets the top bit of the bytes it is about; bytes of other alphabets may be reported, which costs only
/// time.
bool may_need_escape(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kTops = 0x8080808080808080U;
  const auto below = [&](std::uint64_t w, std::uint64_t bound) { return w - kOnes * bound; };
  const auto quote = below(word ^ (kOnes * '"'), 1);
  const auto backslash = below(word ^ (kOnes * '\\'), 1);
  return ((below(word, 0x20) | quote | backslash) & kTops) != 0;
}

bool needs_no_escape(std::string_view text) {
  std::uint64_t word = 0;
  for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    if (may_need_escape(word)) return false;
  }
  if (text.empty()) return true;
  word = 0x2020202020202020U;  // spaces fill what is left
  std::memcpy(&word, text.data(), text.size());
  return !may_need_escape(word);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  if (needs_no_escape(text)) {
    const auto before = out.size();
    const auto after = before + text.size() + 2;
    // The library of g++ 12 may hand over a larger size than was asked for.
    out.resize_and_overwrite(after, [&](char* bytes, std::size_t) {
      bytes[before] = '"';
      std::ranges::copy(text, bytes + before + 1);
      bytes[after - 1] = '"';
      return after;
    });
    return;
  }
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (std::isinf(value)) {
    out += value < 0 ? "-1e999" : "1e999";
    return;
  }
  char buffer[32];
  const auto* const end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
  const std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
  out += digits;
  // A whole number would be read as an integer, which is another kind and has no negative zero.
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace pawl
