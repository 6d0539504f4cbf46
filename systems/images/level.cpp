// SPDX-License-Identifier: Apache-2.0
#include "images/level.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::images {
namespace {

double part(std::uint64_t used, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(used) / static_cast<double>(all);
}

double data_part(const PoolUsage& usage) { return part(usage.used, usage.bytes); }

double metadata_part(const PoolUsage& usage) {
  return part(usage.metadata_used.value_or(0), usage.metadata_bytes.value_or(0));
}

}  // namespace

Alarm alarm(const PoolUsage& usage, double full) {
  const auto most = std::max(data_part(usage), metadata_part(usage));
  if (usage.full || most > full) return Alarm::full;
  return most >= kFilling ? Alarm::filling : Alarm::none;
}

std::string level_text(const PoolUsage& usage) {
  auto text = fmt::format("{:.0f} % of the data", 100 * data_part(usage));
  if (usage.metadata_bytes) text += fmt::format(" and {:.0f} % of the metadata", 100 * metadata_part(usage));
  return text + " are used";
}

}  // namespace pawl::images
