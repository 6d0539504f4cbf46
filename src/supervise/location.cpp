// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "pawl/worker_spec.hpp"

namespace pawl {
namespace {

Result<void> check_levels(std::string_view whose, const Location& location) {
  if (location.levels.size() <= Location::kLevels) return {};
  return fail(Code::spec_invalid,
              fmt::format("the location of the {} has {} levels; there are {}: enterprise, site, area, line, "
                          "cell",
                          whose, location.levels.size(), Location::kLevels),
              {{"levels", std::to_string(location.levels.size())}});
}

}  // namespace

Result<Location> merge(const Location& parent, const Location& child) {
  PAWL_CHECK(check_levels("parent", parent));
  PAWL_CHECK(check_levels("child", child));
  Location merged = parent;
  merged.levels.resize(Location::kLevels);
  for (std::size_t i = 0; i < child.levels.size(); ++i) {
    if (!child.levels[i].empty()) merged.levels[i] = child.levels[i];
  }
  return merged;
}

std::string location_path(const Location& location) {
  std::string path;
  for (const auto& level : location.levels) {
    if (level.empty()) continue;
    if (!path.empty()) path += '.';
    path += level;
  }
  return path;
}

}  // namespace pawl
