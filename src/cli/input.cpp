// SPDX-License-Identifier: Apache-2.0
#include "cli/input.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "cli/text.hpp"
#include "pawl/json.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostPayload = std::size_t{16} << 20;

/// All of a stream, or as much of it as shows that it is too large.
std::string read_bounded(std::istream& in) {
  std::string text(kMostPayload + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

Result<std::string> read_json(const std::string& given, std::string_view what) {
  std::string text = given.empty() ? "{}" : given;
  auto from = std::string("the argument");
  if (given == "-") {
    text = read_bounded(std::cin);
    from = "standard input";
  } else if (given.starts_with('@')) {
    from = given.substr(1);
    std::ifstream file(from, std::ios::binary);
    if (!file)
      return fail(Code::invalid_argument, fmt::format("{}: {} cannot be read", what, printable(from)));
    text = read_bounded(file);
  }
  const auto document = JsonDocument::parse(text, {.bytes = kMostPayload});
  if (!document) return fail(Error(document.error()).while_(fmt::format("{} ({})", what, printable(from))));
  if (document->root().kind() != JsonKind::object) {
    return fail(Code::wrong_type,
                fmt::format("{} ({}): expected a JSON object such as {{\"by\":\"Ada\"}}, got {}", what,
                            printable(from), document->root().kind_name()));
  }
  return document->root().to_text();
}

}  // namespace pawl::cli
