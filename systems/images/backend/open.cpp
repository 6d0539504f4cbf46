// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "images/backend/backend.hpp"
#include "images/backend/steps.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::uint64_t kSmallestPool = std::uint64_t{64} << 20U;
constexpr std::size_t kLongestPoolName = 64;

bool in_pool_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

Result<std::unique_ptr<Backend>> open_backend(BackendOptions options, const Step& step) {
  if (options.root.empty())
    return fail(Code::invalid_argument, "the pool needs a directory of its own (root)");
  // Mount points are compared with what the kernel shows, which is absolute and without links.
  std::error_code error;
  const auto absolute = std::filesystem::weakly_canonical(options.root, error);
  if (error) {
    return fail(Code::invalid_argument, fmt::format("root \"{}\": {}", options.root, error.message()));
  }
  options.root = absolute.string();
  if (options.pool.empty() || options.pool.size() > kLongestPoolName ||
      !std::ranges::all_of(options.pool, in_pool_name)) {
    return fail(Code::invalid_argument,
                fmt::format("pool name \"{}\": it has 1 to {} letters, digits and \"_\"", options.pool,
                            kLongestPoolName));
  }
  if (options.pool_bytes < kSmallestPool) {
    return fail(Code::invalid_argument,
                fmt::format("a pool of {} bytes: it has at least {}", options.pool_bytes, kSmallestPool));
  }
  if (options.data_device.empty() != options.metadata_device.empty()) {
    return fail(Code::invalid_argument, "data_device and metadata_device are given together, or neither");
  }
  switch (options.kind) {
    case BackendKind::dir:
      return make_dir_backend(options, step);
    case BackendKind::reflink:
      return make_reflink_backend(options, step);
    case BackendKind::btrfs:
      return make_btrfs_backend(options, step);
    case BackendKind::dmthin:
      return make_dmthin_backend(options, step);
  }
  return fail(Code::invalid_argument, "an unknown kind of pool");
}

}  // namespace pawl::images::pools

namespace pawl::images {

Result<std::unique_ptr<Backend>> open_backend(BackendOptions options) {
  return pools::open_backend(std::move(options), [](std::string_view) {});
}

}  // namespace pawl::images
