// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Files as block devices. A device is recognised by the file behind it, so that a process finds what an
/// earlier one has attached.

#include <optional>
#include <string>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::pools {

/// The device whose backing file this is, e.g. "/dev/loop3"; nullopt if absent.
Result<std::optional<std::string>> find_loop(const std::string& file);

/// Finds or attaches one; it stays when the process ends.
Result<std::string> attach_loop(const std::string& file);

/// No-op if absent. Error: `volume_busy` if the device is mounted or open.
Result<void> detach_loop(const std::string& file, Duration busy_timeout);

/// Lets the device of this file know that the file has grown; no-op if absent.
Result<void> resize_loop(const std::string& file);

}  // namespace pawl::images::pools
