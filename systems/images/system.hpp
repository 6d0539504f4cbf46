// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The system `images`: container images from an object store to a snapshot that can be mounted.
///
///     systems.push_back(pawl::images::make_images());

#include <memory>

#include "pawl/system.hpp"

namespace pawl::images {

std::unique_ptr<System> make_images();

}  // namespace pawl::images
