// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pawl/system.hpp"

namespace pawl::images {

/// `pawl images process|ls|show|activate|deactivate|rm|gc|setup-pool|detach-pool|doctor`.
std::vector<Verb> image_verbs();

}  // namespace pawl::images
