// SPDX-License-Identifier: Apache-2.0
// A text that is a time or a duration is printed in its one form, which is read as the same value again.
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/time.hpp"

namespace {

template <class T>
void check(const pawl::Result<T>& first, pawl::Result<T> (*parse)(std::string_view)) {
  if (!first) {
    PAWL_ASSERT(pawl::is_utf8(first.error().message()), "a message can be shown and sent");
    return;
  }
  const auto text = pawl::to_string(*first);
  const auto second = parse(text);
  PAWL_ASSERT(second.has_value(), "what was printed can be read", text);
  PAWL_ASSERT(*second == *first, "it is the same value", text);
  PAWL_ASSERT(pawl::to_string(*second) == text, "it has one form", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check(pawl::parse_time(input), &pawl::parse_time);
  check(pawl::parse_duration(input), &pawl::parse_duration);
  return 0;
}
