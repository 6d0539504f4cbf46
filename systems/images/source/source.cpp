// SPDX-License-Identifier: Apache-2.0
#include "images/source/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/utf8.hpp"

namespace pawl::images {

Result<void> check_key(std::string_view key) {
  constexpr std::size_t kLongestKey = 1024;
  const auto refused = [&](std::string_view why) {
    return fail(Code::invalid_argument, fmt::format("key \"{}\": {}", shown(key), why));
  };
  if (key.empty() || key.size() > kLongestKey)
    return refused(fmt::format("it has 1 to {} bytes, not {}", kLongestKey, key.size()));
  if (!is_utf8(key) || key.contains('\0')) return refused("it is UTF-8 without NUL");
  for (std::size_t begin = 0; begin <= key.size();) {
    const auto end = std::min(key.find('/', begin), key.size());
    const auto component = key.substr(begin, end - begin);
    if (component == "." || component == "..") return refused("no component of it is \".\" or \"..\"");
    begin = end + 1;
  }
  return {};
}

}  // namespace pawl::images
