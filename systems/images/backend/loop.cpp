// SPDX-License-Identifier: Apache-2.0
#include "images/backend/loop.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "images/backend/os.hpp"

namespace pawl::images::pools {
namespace {

constexpr int kLoopMajor = 7;
constexpr int kFreeAttempts = 64;

/// The node of a device; made if udev does not.
Result<Descriptor> open_loop(const std::string& path, int number, int flags) {
  if (!exists(path)) {
    const auto device = makedev(kLoopMajor, static_cast<unsigned>(number));
    if (::mknod(path.c_str(), S_IFBLK | 0600U, device) != 0 && errno != EEXIST) {
      return fail(system_error("make the node", path));
    }
  }
  return open_file(path, flags);
}

/// Whether the open device has this file behind it.
Result<bool> is_behind(int device, const struct stat& file) {
  loop_info64 info{};
  if (::ioctl(device, LOOP_GET_STATUS64, &info) == 0) {
    return info.lo_device == file.st_dev && info.lo_inode == file.st_ino;
  }
  if (errno == ENXIO) return false;  // not attached any more
  return fail(system_error("ask", "a loop device"));
}

/// One attempt: 0, an errno, or EBUSY if it is open elsewhere.
int release_loop(const std::string& path, const struct stat& file) {
  {
    const Descriptor device(::open(path.c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
    if (!device) return errno;
    const auto behind = is_behind(device.get(), file);
    if (!behind || !*behind) return 0;
    if (::ioctl(device.get(), LOOP_CLR_FD) != 0) return errno == ENXIO ? 0 : errno;
  }
  // The kernel accepts it while others have the device open, and then waits for them: that is not gone.
  const Descriptor device(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!device) return errno == ENXIO || errno == ENOENT ? 0 : errno;
  loop_info64 info{};
  if (::ioctl(device.get(), LOOP_GET_STATUS64, &info) != 0) return errno == ENXIO ? 0 : errno;
  if (info.lo_device != file.st_dev || info.lo_inode != file.st_ino) return 0;
  info.lo_flags &= ~static_cast<std::uint32_t>(LO_FLAGS_AUTOCLEAR);
  ::ioctl(device.get(), LOOP_SET_STATUS64, &info);
  return EBUSY;
}

}  // namespace

Result<std::optional<std::string>> find_loop(const std::string& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return fail(system_error("look at", file));
  }
  PAWL_TRY(const auto names, names_in("/sys/block"));
  for (const auto& name : names) {
    if (!name.starts_with("loop") || !exists("/sys/block/" + name + "/loop/backing_file")) continue;
    auto path = "/dev/" + name;
    // Devices of others come and go while they are looked at.
    const auto device = open_loop(path, std::stoi(name.substr(4)), O_RDONLY);
    if (!device && device.error().code() == Code::volume_failed) continue;
    if (!device) return fail(device.error());
    PAWL_TRY(const auto behind, is_behind(device->get(), status));
    if (behind) return path;
  }
  return std::nullopt;
}

Result<std::string> attach_loop(const std::string& file) {
  PAWL_TRY(auto known, find_loop(file));
  if (known) return *std::move(known);
  PAWL_TRY(const auto control, open_file("/dev/loop-control", O_RDWR));
  PAWL_TRY(const auto backing, open_file(file, O_RDWR));
  for (int attempt = 0; attempt < kFreeAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail(system_error("get", "a free loop device"));
    auto path = fmt::format("/dev/loop{}", number);
    PAWL_TRY(const auto device, open_loop(path, number, O_RDWR));
    loop_config config{};
    config.fd = static_cast<std::uint32_t>(backing.get());
    auto* shown = static_cast<unsigned char*>(config.info.lo_file_name);
    std::copy_n(file.begin(), std::min(file.size(), std::size_t{LO_NAME_SIZE - 1}), shown);
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return path;
    // Another process may have taken the free one in between.
    if (errno != EBUSY) return fail(system_error("attach", fmt::format("{} to {}", file, path)));
  }
  return fail(Code::volume_busy, fmt::format("no loop device stays free long enough to attach {}", file));
}

Result<void> detach_loop(const std::string& file, Duration busy_timeout) {
  PAWL_TRY(const auto path, find_loop(file));
  if (!path) return {};
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return fail(system_error("look at", file));
  const int result = while_busy(busy_timeout, [&] { return release_loop(*path, status); });
  if (result == 0) return {};
  return fail(system_error("detach", fmt::format("{} from {}", *path, file), result));
}

Result<void> resize_loop(const std::string& file) {
  PAWL_TRY(const auto path, find_loop(file));
  if (!path) return {};
  PAWL_TRY(const auto device, open_file(*path, O_RDWR));
  if (::ioctl(device.get(), LOOP_SET_CAPACITY, 0) != 0) return fail(system_error("resize", *path));
  return {};
}

}  // namespace pawl::images::pools
