// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/worker_spec.hpp"

namespace pawl {
namespace {

/// Longer names are compared for equality only, to bound the cost.
constexpr std::size_t kLongestName = 64;

char lower_letter(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), lower_letter);
  return lower;
}

/// The unrestricted Damerau-Levenshtein distance. Both names are at most `kLongestName` long.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, kLongestName + 2>, kLongestName + 2> least;
  const std::size_t beyond = a.size() + b.size();
  least[0].fill(beyond);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    least[i + 1][0] = beyond;
    least[i + 1][1] = i;
  }
  for (std::size_t j = 0; j <= b.size(); ++j) least[1][j + 1] = j;

  std::array<std::size_t, 256> row_of{};  // the last position of a letter of b in a, from 1
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t column = 0;  // the last position of a[i] in b, from 1
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      const auto row = row_of[static_cast<std::uint8_t>(b[j - 1])];
      const auto swapped = least[row][column] + (i - row - 1) + 1 + (j - column - 1);
      least[i + 1][j + 1] =
          std::min({least[i][j] + (same ? 0 : 1), least[i + 1][j] + 1, least[i][j + 1] + 1, swapped});
      if (same) column = j;
    }
    row_of[static_cast<std::uint8_t>(a[i - 1])] = i;
  }
  return least[a.size() + 1][b.size() + 1];
}

std::size_t distance_limit(std::size_t length) noexcept { return length <= 4 ? 1 : length <= 8 ? 2 : 3; }

}  // namespace

std::string nearest_name(std::string_view written, const std::vector<std::string>& known) {
  if (written.empty()) return {};
  const auto wanted = lower_case(written);
  const std::string* nearest = nullptr;
  std::size_t least = distance_limit(wanted.size()) + 1;
  for (const auto& name : known) {
    const auto longer = std::max(name.size(), wanted.size());
    if (longer - std::min(name.size(), wanted.size()) >= least) continue;
    const auto candidate = lower_case(name);
    std::size_t distance = least;
    if (candidate == wanted) {
      distance = 0;
    } else if (longer <= kLongestName) {
      distance = edit_distance(wanted, candidate);
    }
    if (distance >= least) continue;
    least = distance;
    nearest = &name;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace pawl
