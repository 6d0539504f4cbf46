// SPDX-License-Identifier: Apache-2.0
// Any bytes either decode or are refused with a readable message; what decodes can be written and read back.
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace {

enum class Colour { red, green, blue };

struct Inner {
  std::string name = "unnamed";
  pawl::Required<int> count;
  std::optional<Colour> colour;
  bool operator==(const Inner&) const = default;
};

/// Every kind of field that a stored struct may have.
struct Everything {
  bool flag = false;
  std::int8_t tiny = 0;
  std::int64_t large = 0;
  std::uint8_t byte = 0;
  std::uint64_t huge = 0;
  float ratio = 0;
  double number = 0;
  std::string text;
  Colour colour = Colour::red;
  std::optional<Inner> maybe;
  std::optional<std::vector<std::optional<int>>> holes;
  std::vector<Inner> list;
  std::vector<std::vector<double>> matrix;
  std::array<int, 2> pair{};
  std::map<std::string, Inner> by_name;
  pawl::Json any;
  pawl::Time when{};
  pawl::Duration patience{};
  std::chrono::seconds pause{};
  std::chrono::hours shift{};
  bool operator==(const Everything&) const = default;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto first = pawl::decode<Everything>(input);
  if (!first) {
    PAWL_ASSERT(pawl::is_utf8(first.error().message()), "a message can be shown and sent");
    return 0;
  }
  const auto text = pawl::encode(*first);
  PAWL_ASSERT(text.has_value(), "what was decoded can be written");
  PAWL_ASSERT(pawl::encode(*first) == text, "a value has one text");
  const auto second = pawl::decode<Everything>(*text);
  PAWL_ASSERT(second.has_value(), "what was written can be read", *text);
  PAWL_ASSERT(*second == *first, "reading gives the value that was written", *text);
  PAWL_ASSERT(pawl::encode(*second) == text, "the text does not change from one writing to the next", *text);
  return 0;
}
