// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads request bodies, for the routes of systems.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/json.hpp"

namespace pawl::systems {

/// Decodes the body; an empty body is an empty object. Errors: those of `decode`; `unknown_name` for a field
/// that is not in `known`.
template <class T>
Result<T> read_body(const http::Request& request, std::initializer_list<std::string_view> known) {
  const std::string_view text = request.body.empty() ? std::string_view("{}") : request.body;
  PAWL_TRY(const auto document, JsonDocument::parse(text, {.unique_keys = true}));
  const auto root = document.root();
  for (std::size_t i = 0; i < root.size() && root.kind() == JsonKind::object; ++i) {
    if (std::ranges::find(known, root.key_at(i)) == known.end()) {
      return fail(Code::unknown_name,
                  fmt::format("$.{}: there is no such field; known: {}", root.key_at(i).substr(0, 64),
                              known.size() == 0 ? "none" : fmt::format("{}", fmt::join(known, ", "))));
    }
  }
  T body{};
  PAWL_CHECK(decode_into(root, body));
  return body;
}

}  // namespace pawl::systems
