// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/descriptor.hpp"

namespace pawl::images {

using systems::Descriptor;

}  // namespace pawl::images
