// SPDX-License-Identifier: Apache-2.0
#include "images/backend/mounts.hpp"

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <sstream>

#include "images/backend/os.hpp"

namespace pawl::images::pools {
namespace {

/// The kernel writes blanks and the like as three octal digits.
std::string unescape_mount(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

Result<dev_t> block_device(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return fail(system_error("look at", path));
  if (S_ISBLK(status.st_mode)) return status.st_rdev;
  return fail(Code::volume_failed, fmt::format("{} is not a block device", path));
}

bool is_of(const Mounted& mount, dev_t device) {
  if (mount.major == major(device) && mount.minor == minor(device)) return true;
  struct stat source{};
  return mount.source.starts_with("/dev/") && ::stat(mount.source.c_str(), &source) == 0 &&
         S_ISBLK(source.st_mode) && source.st_rdev == device;
}

}  // namespace

Result<std::vector<Mounted>> mounts() {
  PAWL_TRY(const auto text, read_file("/proc/self/mountinfo"));
  if (!text) return fail(Code::backend_unavailable, "/proc is not mounted, which shows what is mounted");
  std::vector<Mounted> found;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string root;
    std::string point;
    char colon = 0;
    Mounted mount;
    words >> id >> parent >> mount.major >> colon >> mount.minor >> root >> point;
    if (!words) return fail(Code::volume_failed, "a line of /proc/self/mountinfo cannot be parsed: " + line);
    mount.point = unescape_mount(point);
    // After any number of optional words and a dash: the type and the source.
    for (std::string word; words >> word && word != "-";) {}
    std::string type;
    std::string source;
    words >> type >> source;
    mount.source = unescape_mount(source);
    found.push_back(std::move(mount));
  }
  return found;
}

Result<bool> is_mounted(const std::string& device, const std::string& point) {
  PAWL_TRY(const auto number, block_device(device));
  PAWL_TRY(const auto all, mounts());
  const auto topmost = std::ranges::find(all | std::views::reverse, point, &Mounted::point);
  if (topmost == all.rend()) return false;
  if (is_of(*topmost, number)) return true;
  return fail(
      Code::volume_busy,
      fmt::format("another file system is mounted at {}, where {} belongs; unmount it", point, device));
}

Result<bool> is_mounted_anywhere(const std::string& device) {
  PAWL_TRY(const auto number, block_device(device));
  PAWL_TRY(const auto all, mounts());
  return std::ranges::any_of(all, [&](const Mounted& mount) { return is_of(mount, number); });
}

Result<void> mount_device(const std::string& device, const std::string& point, const std::string& type,
                          const std::string& settings) {
  PAWL_CHECK(make_directories(point));
  PAWL_TRY(const bool there, is_mounted(device, point));
  if (there) return {};
  constexpr unsigned long kFlags = MS_NODEV | MS_NOSUID | MS_NOATIME;
  if (::mount(device.c_str(), point.c_str(), type.c_str(), kFlags, settings.c_str()) == 0) return {};
  return fail(system_error("mount", fmt::format("{} ({}) at {}", device, type, point)));
}

Result<void> unmount_device(const std::string& point, Duration busy_timeout) {
  PAWL_TRY(const auto all, mounts());
  if (std::ranges::find(all, point, &Mounted::point) != all.end()) {
    const int result =
        while_busy(busy_timeout, [&] { return ::umount2(point.c_str(), UMOUNT_NOFOLLOW) == 0 ? 0 : errno; });
    if (result != 0 && result != EINVAL) {  // EINVAL: it has gone in between
      return fail(system_error("unmount", point, result));
    }
  }
  if (::rmdir(point.c_str()) != 0 && errno != ENOENT)
    return fail(system_error("remove the mount point", point));
  return {};
}

}  // namespace pawl::images::pools
