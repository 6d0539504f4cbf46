// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace pawl {

/// One character of a text.
struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  ///< bytes; 0: the text is not valid UTF-8 here
};

/// The code point at the beginning of a text that is not empty.
CodePoint first_code_point(std::string_view text);

/// Whether Unicode (15.0) counts it among the format characters and separators of lines and paragraphs (Cf,
/// Zl, Zp): it is invisible, or changes how its neighbours are shown.
bool is_format_character(char32_t value);

}  // namespace pawl
