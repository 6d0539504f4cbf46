// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "images/backend/backend.hpp"
#include "images/backend/dm.hpp"
#include "images/backend/os.hpp"

namespace pawl::images {
namespace {

using pools::DeviceMapper;
using pools::read_file;

/// Why a kind cannot work here; empty where it can.
std::string obstacle_of_programs(std::initializer_list<const char*> programs) {
  for (const auto* program : programs) {
    bool there = false;
    for (const auto* directory : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
      there = there || ::access(fmt::format("{}{}", directory, program).c_str(), X_OK) == 0;
    }
    if (!there) return fmt::format("the program {} is not installed", program);
  }
  return "";
}

std::string obstacle_of_file_system(std::string_view type) {
  const auto text = read_file("/proc/filesystems");
  if (text && *text) {
    std::istringstream words(**text);
    for (std::string word; words >> word;) {
      if (word == type) return "";
    }
  }
  return fmt::format("the kernel has no {}", type);
}

std::string obstacle_of_loop() {
  if (::geteuid() != 0) return "mounting needs the superuser";
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) return "there is no /dev/loop-control";
  return "";
}

std::string first_of(std::initializer_list<std::string> obstacles) {
  for (const auto& obstacle : obstacles) {
    if (!obstacle.empty()) return obstacle;
  }
  return "";
}

std::string obstacle_of_mapper() {
  if (::geteuid() != 0) return "the device mapper needs the superuser";
  const auto mapper = DeviceMapper::open();
  if (!mapper) return mapper.error().message();
  if (auto targets = mapper->check_target("thin-pool"); !targets) return targets.error().message();
  return "";
}

BackendChoice choice(BackendKind kind, std::string obstacle) {
  return {.kind = kind, .available = obstacle.empty(), .reason = std::move(obstacle)};
}

}  // namespace

std::vector<BackendChoice> available_backends() {
  return {
      choice(BackendKind::dmthin, first_of({obstacle_of_mapper(), obstacle_of_file_system("ext4"),
                                            obstacle_of_programs({"mkfs.ext4", "thin_check", "thin_ls"})})),
      choice(BackendKind::reflink,
             first_of({obstacle_of_loop(), obstacle_of_file_system("xfs"), obstacle_of_file_system("ext4"),
                       obstacle_of_programs({"mkfs.xfs", "mkfs.ext4", "xfs_growfs"})})),
      choice(BackendKind::btrfs, first_of({obstacle_of_loop(), obstacle_of_file_system("btrfs"),
                                           obstacle_of_programs({"mkfs.btrfs"})})),
      choice(BackendKind::dir, "")};
}

}  // namespace pawl::images
