// SPDX-License-Identifier: Apache-2.0
#include "images/backend/pool_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "images/backend/loop.hpp"
#include "images/backend/mounts.hpp"
#include "images/backend/os.hpp"

namespace pawl::images::pools {

Result<void> make_sparse(const std::string& path, std::uint64_t bytes) {
  PAWL_TRY(const auto file, open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || ::fsync(file.get()) != 0) {
    return fail(system_error("make", fmt::format("{} of {} bytes", path, bytes)));
  }
  return {};
}

PoolFile::PoolFile(Kind kind, const BackendOptions& options, Step step)
    : kind_(std::move(kind)),
      root_(options.root),
      bytes_(options.pool_bytes),
      busy_timeout_(options.busy_timeout),
      step_(std::move(step)) {}

Result<void> PoolFile::make() const {
  const auto making = file() + ".making";
  PAWL_CHECK(make_sparse(making, bytes_));
  step_("make the pool file");
  auto command = kind_.make_program;
  command.push_back(making);
  PAWL_CHECK(run_program(command));
  PAWL_CHECK(sync_file_system(root_));
  step_("make the file system of the pool");
  PAWL_CHECK(rename_file(making, file()));
  step_("name the pool file");
  return {};
}

Result<void> PoolFile::attach() {
  PAWL_CHECK(make_directories(point()));
  if (!exists(file())) PAWL_CHECK(make());
  PAWL_TRY(const auto device, attach_loop(file()));
  step_("attach the pool");
  PAWL_CHECK(mount_device(device, point(), kind_.type, kind_.settings));
  step_("mount the pool");
  return {};
}

Result<void> PoolFile::detach() {
  PAWL_CHECK(unmount_device(point(), busy_timeout_));
  step_("unmount the pool");
  PAWL_CHECK(detach_loop(file(), busy_timeout_));
  step_("detach the pool");
  return {};
}

Result<void> PoolFile::check_attached() const {
  PAWL_TRY(const auto device, find_loop(file()));
  if (device) {
    PAWL_TRY(const bool mounted, is_mounted(*device, point()));
    if (mounted) return {};
  }
  return fail(Code::backend_unavailable,
              fmt::format("the pool {} is not mounted at {}; attach does that", file(), point()));
}

Result<PoolUsage> PoolFile::usage() const {
  struct statvfs space{};
  if (::statvfs(point().c_str(), &space) != 0) return fail(system_error("look at", point()));
  PoolUsage usage{.bytes = space.f_blocks * space.f_frsize,
                  .used = (space.f_blocks - space.f_bavail) * space.f_frsize,
                  .writable = (space.f_flag & ST_RDONLY) == 0};
  if (!usage.writable) usage.problems.push_back(fmt::format("the pool at {} is read-only", point()));
  return usage;
}

Result<void> PoolFile::grow(std::uint64_t bytes) {
  struct stat status{};
  if (::stat(file().c_str(), &status) != 0) return fail(system_error("look at", file()));
  if (static_cast<std::uint64_t>(status.st_size) > bytes) {
    return fail(Code::invalid_argument,
                fmt::format("the pool has {} bytes and cannot shrink to {}", status.st_size, bytes));
  }
  if (::truncate(file().c_str(), static_cast<off_t>(bytes)) != 0) return fail(system_error("extend", file()));
  step_("grow the file");
  PAWL_CHECK(resize_loop(file()));
  step_("grow the device");
  return {};
}

}  // namespace pawl::images::pools
