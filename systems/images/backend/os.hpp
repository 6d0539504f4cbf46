// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Helpers for the system calls of the back ends: descriptors that close themselves, errors with
/// errno, files that are written whole or not at all, programs that are run without a shell.

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/descriptor.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::pools {

/// "cannot <doing> <what>: <the kernel's words>". The code follows the number: no space is `pool_full`, in
/// use is `volume_busy`, not allowed is `backend_unavailable`, everything else may pass and is
/// `volume_failed`.
Error system_error(std::string_view doing, std::string_view what, int number = errno);

/// O_CLOEXEC is added.
Result<Descriptor> open_file(const std::string& path, int flags, unsigned mode = 0600);
/// A directory below `parent`, without following a link and without crossing into another mount. Error:
/// `volume_busy` if something is mounted there.
Result<Descriptor> open_directory(int parent, const std::string& name);

Result<void> make_directories(const std::string& path);
bool exists(const std::string& path);
Result<std::vector<std::string>> names_in(const std::string& directory);

/// Nullopt if absent.
Result<std::optional<std::string>> read_file(const std::string& path);
/// Under a temporary name first, then renamed, and durable when it returns.
Result<void> write_file(const std::string& path, std::string_view text);
/// Durable when it returns.
Result<void> rename_file(const std::string& from, const std::string& to);
/// Makes the entries of a directory durable.
Result<void> sync_directory(const std::string& path);
/// Makes everything durable that was written to the file system of `path`.
Result<void> sync_file_system(const std::string& path);

/// What a program that ended well has written. It is searched in the system's own places only, and gets a
/// fixed environment. Errors: `backend_unavailable` if it is not installed, `volume_failed` with its
/// output.
Result<std::string> run_program(const std::vector<std::string>& arguments);

/// Calls `attempt`, which returns 0 or an errno, until it returns something else than EBUSY or the time is
/// over. It is called at least once.
int while_busy(Duration busy_timeout, const std::function<int()>& attempt);

}  // namespace pawl::images::pools
