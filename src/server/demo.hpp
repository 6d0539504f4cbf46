// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pawl/system.hpp"

namespace pawl::server {

/// Orders that move by themselves: through work, timers and a permit pool. Switched on by `demo: true`.
std::unique_ptr<System> make_demo();

}  // namespace pawl::server
