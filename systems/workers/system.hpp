// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The system `workers`: supervises processes and connections declared in YAML.
///
///     systems.push_back(pawl::workers::make_workers());

#include <memory>

#include "pawl/system.hpp"

namespace pawl::workers {

std::unique_ptr<System> make_workers();

}  // namespace pawl::workers
