// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::images::pools {

/// The names in an open directory, without "." and "..". `path` is for messages.
Result<std::vector<std::string>> entries_of(int directory, const std::string& path);

}  // namespace pawl::images::pools
