// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "kernel/utf8.hpp"

namespace pawl::supervise {

/// Replaces each byte that is not UTF-8 by U+FFFD, so that a worker's text can be stored.
inline std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string made;
  while (!text.empty()) {
    std::size_t size = 1;
    while (size <= std::min<std::size_t>(4, text.size()) && !is_utf8(text.substr(0, size))) ++size;
    const bool valid = size <= std::min<std::size_t>(4, text.size());
    made += valid ? text.substr(0, size) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(valid ? size : 1);
  }
  return made;
}

}  // namespace pawl::supervise
