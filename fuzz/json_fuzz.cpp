// SPDX-License-Identifier: Apache-2.0
// The parser keeps its limits, and what it prints is read as the same value again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/json.hpp"

namespace {

using pawl::JsonDocument;
using pawl::JsonKind;
using pawl::JsonValue;

constexpr pawl::JsonLimits kLimits{.depth = 8, .bytes = 4096};

std::size_t depth_of(JsonValue value) {
  if (value.kind() != JsonKind::array && value.kind() != JsonKind::object) return 0;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < value.size(); ++i) deepest = std::max(deepest, depth_of(value.at(i)));
  return deepest + 1;
}

bool same(JsonValue a, JsonValue b) {
  if (a.kind() != b.kind() || a.size() != b.size()) return false;
  if (a.as_boolean() != b.as_boolean() || a.as_integer() != b.as_integer()) return false;
  if (a.as_unsigned() != b.as_unsigned() || a.as_number() != b.as_number()) return false;
  if (a.as_string() != b.as_string()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.kind() == JsonKind::object && a.key_at(i) != b.key_at(i)) return false;
    if (!same(a.at(i), b.at(i))) return false;
  }
  return true;
}

/// Every member is found under its own name, and every text is UTF-8.
void check_names(JsonValue value) {
  if (const auto text = value.as_string()) PAWL_ASSERT(pawl::is_utf8(*text), "a string is UTF-8");
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value.kind() == JsonKind::object) {
      PAWL_ASSERT(pawl::is_utf8(value.key_at(i)), "a name is UTF-8");
      const auto found = value.find(value.key_at(i));
      PAWL_ASSERT(found && same(*found, value.at(i)), "a member is found by its name");
    }
    check_names(value.at(i));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto first = JsonDocument::parse(input, kLimits);
  if (!first) {
    PAWL_ASSERT(pawl::is_utf8(first.error().message()), "a message can be shown and sent");
    return 0;
  }
  PAWL_ASSERT(size <= kLimits.bytes, "the limit of the size is kept");
  PAWL_ASSERT(depth_of(first->root()) <= kLimits.depth, "the limit of the depth is kept");
  check_names(first->root());

  const auto text = first->root().to_text();
  const auto second = JsonDocument::parse(text);
  PAWL_ASSERT(second.has_value(), "what was printed can be read", text);
  PAWL_ASSERT(same(first->root(), second->root()), "it is the same value", text);
  PAWL_ASSERT(second->root().to_text() == text, "it is printed in the same way again", text);

  pawl::JsonWriter out;
  out.embed(input);
  PAWL_ASSERT(out.take().has_value(), "what can be read can be embedded");
  return 0;
}
