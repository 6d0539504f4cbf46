// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/config.hpp"

namespace pawl::cli {

/// Every system of this command, with its defaults.
server::Systems built_in_systems();

}  // namespace pawl::cli
