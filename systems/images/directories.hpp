// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Directories that only the server and root can change.
///
///     PAWL_CHECK(make_safe_directory("/var/lib/pawl/images"));

#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::images {

/// Makes a directory, and those above it that are missing, with mode 0755. It and each directory above it
/// must belong to root or to the server's user, and not be writable by their groups or by others. Above it,
/// writable directories with the sticky bit (such as /tmp) and symbolic links of root or of the server's user
/// are allowed; the directory itself must not be a link. Errors: `config_invalid`, which names the setting;
/// `volume_failed`.
Result<void> make_safe_directory(const std::string& path, std::string_view setting = "images.directory");

}  // namespace pawl::images
