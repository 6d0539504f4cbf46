// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace pawl::cli {

int exit_code(Code code) noexcept {
  switch (code) {
    case Code::unreachable:
    case Code::answer_invalid:
      return kUnreachable;
    case Code::unauthenticated:
    case Code::forbidden:
      return kNotAuthorised;
    case Code::unknown_machine:
    case Code::unknown_state:
    case Code::unknown_event:
    case Code::unknown_instance:
    case Code::unknown_pool:
    case Code::source_missing:
    case Code::volume_missing:
      return kNotFound;
    case Code::illegal_event:
    case Code::guard_refused:
    case Code::finished_instance:
    case Code::duplicate_instance:
    case Code::version_conflict:
    case Code::request_id_reused:
    case Code::lease_lost:
    case Code::volume_exists:
    case Code::volume_busy:
    case Code::desired_conflict:
      return kConflict;
    default:
      return kFailed;
  }
}

int report(const Error& error) {
  const auto number = static_cast<int>(error.code());
  std::fflush(stdout);  // what was printed before comes first where both go to one place
  fmt::print(stderr, "pawl: PAWL-{} {}: {}\n", number, name(error.code()), printable(error.message()));
  if (const auto hint = error.field("hint"); !hint.empty()) fmt::print(stderr, "hint: {}\n", printable(hint));
  fmt::print(stderr, "hint: `pawl explain {}` explains the error\n", number);
  return exit_code(error.code());
}

int print_json(Result<std::string> json) {
  if (!json) return report(json.error());
  fmt::print("{}\n", inert_json(*json));
  return kOk;
}

void note(std::string_view text) {
  std::fflush(stdout);
  fmt::print(stderr, "pawl: {}\n", printable(text));
}

Table::Table(const std::vector<std::string>& head) {
  auto& row = rows_.emplace_back();
  for (std::string_view cell : head) {
    right_.push_back(cell.starts_with('>'));
    if (right_.back()) cell.remove_prefix(1);
    row.emplace_back(cell, Style::head);
  }
}

void Table::add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

std::vector<std::string> Table::lines(std::size_t most) const {
  std::vector<std::size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i].text));
  }
  std::vector<std::string> made;
  for (const auto& row : rows_) {
    std::string line;
    std::size_t used = 0;     // columns, blanks included
    std::size_t pending = 0;  // blanks that are written only if something follows
    for (std::size_t i = 0; i < row.size(); ++i) {
      auto text = row[i].text;
      const auto gap = widths[i] - columns(text);
      const auto before = pending + (right_[i] ? gap : 0);
      if (!text.empty() && most != 0) text = clip(text, most - std::min(used + before, most));
      if (!text.empty()) {
        line.append(before, ' ');
        line += paint(text, row[i].style);
        used += before + columns(text);
        pending = (right_[i] ? 0 : gap) + 2;
      } else {
        pending += widths[i] + 2;
      }
    }
    made.push_back(std::move(line));
  }
  return made;
}

void Table::print() const {
  for (const auto& line : lines(output_is_terminal() ? terminal_size().columns : 0)) fmt::print("{}\n", line);
}

}  // namespace pawl::cli
