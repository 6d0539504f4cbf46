// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace bench {

/// How often memory was allocated so far, by the whole program.
std::uint64_t allocations();

}  // namespace bench
