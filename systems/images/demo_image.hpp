// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pawl/error.hpp"

namespace pawl::images {

/// Writes a small image into this directory, which exists, unless it is there already, and returns its path.
/// Error: `store_io`.
Result<std::string> write_demo_image(const std::string& directory);

}  // namespace pawl::images
