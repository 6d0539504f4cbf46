// SPDX-License-Identifier: Apache-2.0
#include "kernel/json_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>

namespace pawl {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  // Without an early end the compiler looks at many bytes at once.
  unsigned special = 0;
  for (const char c : text) {
    special |= static_cast<unsigned>(static_cast<unsigned char>(c) < 0x20) | static_cast<unsigned>(c == '"') |
               static_cast<unsigned>(c == '\\');
  }
  if (special == 0) {
    out += text;
    text = {};
  }
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
