// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How tests stop a back end between two operations, to see that the next process can go on from there.

#include <functional>
#include <memory>
#include <string_view>

#include "images/backend/backend.hpp"

namespace pawl::images::pools {

/// Called after each operation that changes something outside the process, with its name.
using Step = std::function<void(std::string_view)>;

/// As `open_backend`, with a hook.
Result<std::unique_ptr<Backend>> open_backend(BackendOptions options, const Step& step);

std::unique_ptr<Backend> make_dir_backend(const BackendOptions& options, const Step& step);
std::unique_ptr<Backend> make_reflink_backend(const BackendOptions& options, const Step& step);
std::unique_ptr<Backend> make_btrfs_backend(const BackendOptions& options, const Step& step);
std::unique_ptr<Backend> make_dmthin_backend(const BackendOptions& options, const Step& step);

}  // namespace pawl::images::pools
