// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whole trees of files, by descriptors, so that nothing in them can lead outside.

#include <cstdint>
#include <string>

#include "pawl/error.hpp"

namespace pawl::images::pools {

/// Copies what is in the directory `from` into the directory `to`, which is there and empty: contents (shared
/// where the file system can, holes kept), hard links among them, modes, times, extended attributes and
/// links; owners and devices only with the privilege for them. Error: `volume_busy` if something is
/// mounted inside.
Result<void> copy_tree(const std::string& from, const std::string& to);

/// Removes a directory with everything in it; no-op if absent. Error: `volume_busy` where
/// something is mounted inside.
Result<void> remove_tree(const std::string& path);

/// Bytes that its files take up on the disk; a file with several names counts once.
Result<std::uint64_t> tree_bytes(const std::string& path);

}  // namespace pawl::images::pools
