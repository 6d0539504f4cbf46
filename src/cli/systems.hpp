// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/config.hpp"

namespace pawl::cli {

/// Every system that this command knows, each with its defaults.
server::Systems built_in_systems();

}  // namespace pawl::cli
