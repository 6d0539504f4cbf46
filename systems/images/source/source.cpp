// SPDX-License-Identifier: Apache-2.0
#include "images/source/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/utf8.hpp"

namespace pawl::images {

Result<void> check_key(std::string_view key) {
  constexpr std::size_t kLongestKey = 1024;
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const auto refused = [&](std::string_view why) {
    return fail(Code::invalid_argument, fmt::format("key \"{}\": {}", shown(key), why));
  };
  if (key.empty() || key.size() > kLongestKey)
    return refused(fmt::format("it has 1 to {} bytes, not {}", kLongestKey, key.size()));
  if (!std::ranges::all_of(key, is_allowed))
    return refused("it has letters, digits, \"-\", \"_\", \".\" and \"/\" only");
  if (key.front() == '/') return refused("it is relative: it does not begin with \"/\"");
  for (std::size_t begin = 0; begin <= key.size();) {
    const auto end = std::min(key.find('/', begin), key.size());
    const auto component = key.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..")
      return refused("no component of it is empty, \".\" or \"..\"");
    begin = end + 1;
  }
  return {};
}

}  // namespace pawl::images
