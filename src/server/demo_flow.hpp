// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pawl/flow.hpp"

namespace pawl::server::demo {

inline constexpr const char* kDelivery = "demo_delivery";
inline constexpr const char* kDock = "demo_dock";  ///< the queue of its runs

struct Consignment {
  std::string item;
  std::string city;
};
struct Parcel {
  std::string shelf;
  std::int64_t boxes = 0;
  std::string tracking;
};

/// Picks, packs and ships: sometimes a step is retried, or no road leads to the city.
Flow<Consignment, Parcel> delivery_flow();

}  // namespace pawl::server::demo
