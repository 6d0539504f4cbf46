// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Opening by name without leaving a directory.
///
///     PAWL_TRY(const auto etc, open_beneath(root, "rootfs/etc", O_RDONLY | O_DIRECTORY));

#include <string>
#include <string_view>

#include "images/descriptor.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// Opens something at or below `root` without following any link and without leaving its file system; "" is
/// the root itself. Returns none and sets errno where that fails.
Descriptor open_beneath(int root, const std::string& path, int flags) noexcept;

/// The directory at a path as a process sees it whose root directory is `root`: links are followed, and none
/// leads out. Returns none and sets errno where that fails.
Descriptor open_in_root(int root, const std::string& path) noexcept;

/// The text of an error number.
std::string errno_text(int number);

/// `disk_full` if there is no space, `volume_failed` for anything else.
[[nodiscard]] std::unexpected<Error> write_failed(int number, std::string_view doing, std::string_view path);

}  // namespace pawl::images
