// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The system `workers`: a tree of workers that is kept as a file says.
///
///     systems.push_back(pawl::workers::make_workers());

#include <memory>

#include "pawl/system.hpp"

namespace pawl::workers {

std::unique_ptr<System> make_workers();

}  // namespace pawl::workers
