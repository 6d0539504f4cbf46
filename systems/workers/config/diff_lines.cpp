// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "workers/config/diff.hpp"

namespace pawl::workers {
namespace {

using Lines = std::vector<std::string_view>;

/// Texts that would need a larger table are shown as replaced.
constexpr std::size_t kMostCells = std::size_t{4} << 20;

/// A text that ends its last line differs from one that does not: it has one more, which is empty.
Lines split_lines(std::string_view text) {
  Lines lines;
  if (text.empty()) return lines;
  for (;;) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

class LineMatcher {
 public:
  LineMatcher(const Lines& before, const Lines& after) : before_(before), after_(after) {}

  std::vector<LineChange> run() {
    std::size_t first = 0;
    const auto shorter = std::min(before_.size(), after_.size());
    while (first < shorter && before_[first] == after_[first]) ++first;
    std::size_t last = 0;
    while (last < shorter - first && before_[before_.size() - 1 - last] == after_[after_.size() - 1 - last]) {
      ++last;
    }
    add(LineChange::Kind::same, before_, 0, first);
    match(first, before_.size() - last, after_.size() - last);
    add(LineChange::Kind::same, before_, before_.size() - last, before_.size());
    return std::move(changes_);
  }

 private:
  void add(LineChange::Kind kind, const Lines& lines, std::size_t from, std::size_t to) {
    for (; from < to; ++from) changes_.push_back({kind, std::string(lines[from])});
  }

  /// The longest common subsequence of what lies between the equal beginning and the equal end.
  void match(std::size_t first, std::size_t before_end, std::size_t after_end) {
    const auto rows = before_end - first;
    const auto columns = after_end - first;
    std::size_t i = 0;
    std::size_t j = 0;
    if ((rows + 1) * (columns + 1) <= kMostCells) {
      std::vector<std::uint32_t> longest((rows + 1) * (columns + 1));
      const auto cell = [&](std::size_t row, std::size_t column) -> std::uint32_t& {
        return longest[row * (columns + 1) + column];
      };
      for (auto row = rows; row-- > 0;) {
        for (auto column = columns; column-- > 0;) {
          cell(row, column) = before_[first + row] == after_[first + column]
                                  ? cell(row + 1, column + 1) + 1
                                  : std::max(cell(row + 1, column), cell(row, column + 1));
        }
      }
      while (i < rows && j < columns) {
        if (before_[first + i] == after_[first + j]) {
          add(LineChange::Kind::same, before_, first + i, first + i + 1);
          ++i;
          ++j;
        } else if (cell(i + 1, j) >= cell(i, j + 1)) {
          add(LineChange::Kind::removed, before_, first + i, first + i + 1);
          ++i;
        } else {
          add(LineChange::Kind::added, after_, first + j, first + j + 1);
          ++j;
        }
      }
    }
    add(LineChange::Kind::removed, before_, first + i, before_end);
    add(LineChange::Kind::added, after_, first + j, after_end);
  }

  const Lines& before_;
  const Lines& after_;
  std::vector<LineChange> changes_{};
};

}  // namespace

std::vector<LineChange> diff_lines(std::string_view before, std::string_view after) {
  const auto before_lines = split_lines(before);
  const auto after_lines = split_lines(after);
  return LineMatcher(before_lines, after_lines).run();
}

}  // namespace pawl::workers
