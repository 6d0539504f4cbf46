// SPDX-License-Identifier: Apache-2.0
#include "kernel/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pawl {
namespace {

/// How many letters must be changed, added or removed.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view given, const std::vector<std::string>& known) {
  if (given.size() > 64) return {};
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(given.size() / 3, 1) + 1;
  for (const auto& name : known) {
    const auto found = distance(given, name);
    if (found >= least) continue;
    least = found;
    best = &name;
  }
  return best == nullptr ? std::string() : fmt::format(" (did you mean \"{}\"?)", *best);
}

}  // namespace pawl
