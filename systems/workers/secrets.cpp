// SPDX-License-Identifier: Apache-2.0
#include "workers/secrets.hpp"

#include <algorithm>
#include <array>

#include "pawl/json.hpp"

namespace pawl::workers {
namespace {

constexpr std::array<std::string_view, 2> kSecret = {"environment", "headers"};

/// Everything below is hidden where `inside`.
void write_hidden(JsonWriter& out, JsonValue value, bool inside) {
  switch (value.kind()) {
    case JsonKind::object:
      out.begin_object();
      for (std::size_t i = 0; i < value.size(); ++i) {
        out.key(value.key_at(i));
        write_hidden(out, value.at(i),
                     inside || std::ranges::find(kSecret, value.key_at(i)) != kSecret.end());
      }
      out.end_object();
      return;
    case JsonKind::array:
      out.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) write_hidden(out, value.at(i), inside);
      out.end_array();
      return;
    case JsonKind::string:
      out.string(inside ? std::string(kHidden) : hide_secrets_in_text(*value.as_string()));
      return;
    case JsonKind::null:
    case JsonKind::boolean:
    case JsonKind::integer:
    case JsonKind::number:
      break;
  }
  if (inside) {
    out.string(kHidden);
  } else {
    out.splice(value.to_text());
  }
}

}  // namespace

std::string hide_secrets(std::string_view json) {
  const auto document = JsonDocument::parse(json, {.bytes = std::size_t{64} << 20});
  JsonWriter out;
  if (document) {
    write_hidden(out, document->root(), false);
  } else {
    out.string(kHidden);
  }
  return out.take().value_or("null");
}

std::string hide_secrets_in_text(std::string_view text) {
  const bool names_one = std::ranges::any_of(
      kSecret, [text](std::string_view name) { return text.find(name) != std::string_view::npos; });
  return std::string(names_one ? kHidden : text);
}

}  // namespace pawl::workers
