// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace pawl::cli {
namespace {

/// Characters rather than bytes: continuation bytes of UTF-8 take no room.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

int report(const Error& error) {
  const auto number = static_cast<int>(error.code());
  fmt::print(stderr, "pawl: PAWL-{} {}: {}\n", number, name(error.code()), printable(error.message()));
  fmt::print(stderr, "hint: `pawl explain {}` says what it means\n", number);
  return kFailed;
}

int print_json(Result<std::string> json) {
  if (!json) return report(json.error());
  fmt::print("{}\n", *json);
  return kOk;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F steer terminals as well
      shown += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

void Table::add(std::initializer_list<std::string_view> cells) {
  auto& row = rows_.emplace_back();
  for (const auto cell : cells) row.push_back(printable(cell));
}

void Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

}  // namespace pawl::cli
