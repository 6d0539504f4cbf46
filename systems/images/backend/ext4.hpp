// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "images/backend/backend.hpp"

namespace pawl::images::pools {

/// Makes an empty file system with the marker as its UUID. `target` is a device or a file that reads as
/// zeros.
Result<void> make_ext4(const std::string& target, const Volume& volume);

/// Mount options: no discard, and an error stops writing at once.
inline constexpr const char* kExt4Settings = "errors=remount-ro";

}  // namespace pawl::images::pools
