// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pawl/system.hpp"

namespace pawl::server {

/// Simulates orders that use work, timers and a permit pool. Enabled by `demo: true`.
std::unique_ptr<System> make_demo();

}  // namespace pawl::server
