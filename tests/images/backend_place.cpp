// SPDX-License-Identifier: Apache-2.0
#include "tests/images/backend_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <sstream>
#include <utility>

#include "images/backend/dm.hpp"
#include "images/backend/loop.hpp"
#include "images/backend/mounts.hpp"
#include "images/backend/os.hpp"
#include "images/backend/tree.hpp"

namespace pawl::images::pools {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return value == nullptr ? "" : value;
}

/// A device that looks as if it had never been used.
void wipe(const std::string& device) {
  std::ofstream(device, std::ios::binary | std::ios::in) << std::string(128 << 10, '\0');
}

/// Files below the root that may be behind a loop device.
std::vector<std::string> images_below(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".img") || name.starts_with("pool.")) found.push_back(entry.path().string());
  }
  return found;
}

std::vector<std::string> points_below(const std::string& root) {
  std::vector<std::string> found;
  const auto all = mounts();
  if (!all) return found;
  for (const auto& mount : *all | std::views::reverse) {
    if (mount.point.starts_with(root + "/")) found.push_back(mount.point);
  }
  return found;
}

/// Devices of the pool, volumes before the pool itself.
std::vector<std::string> mapped(const std::string& pool) {
  std::vector<std::string> found;
  const auto mapper = DeviceMapper::open();
  if (!mapper) return found;
  const auto names = mapper->names();
  if (!names) return found;
  for (const auto& name : *names) {
    const auto info = mapper->info(name);
    if (!info || !*info || !(*info)->uuid.starts_with("PAWL-" + pool + "-")) continue;
    found.insert(name == pool ? found.end() : found.begin(), name);
  }
  return found;
}

}  // namespace

Volume test_volume(std::uint32_t id, std::uint64_t bytes) {
  return {.id = id,
          .name = fmt::format("pawl-test-{}-{}", ::getpid(), id),
          .bytes = bytes,
          .marker = fmt::format("00000000-0000-4000-8000-{:012x}", id)};
}

Volume stranger(std::uint32_t id) {
  auto volume = test_volume(id);
  volume.marker = fmt::format("ffffffff-0000-4000-8000-{:012x}", id);
  return volume;
}

std::string kind_name(BackendKind kind) {
  switch (kind) {
    case BackendKind::dir:
      return "dir";
    case BackendKind::reflink:
      return "reflink";
    case BackendKind::btrfs:
      return "btrfs";
    case BackendKind::dmthin:
      return "dmthin";
  }
  return "unknown";
}

std::string obstacle(BackendKind kind) {
  for (const auto& choice : available_backends()) {
    if (choice.kind == kind) return choice.reason;
  }
  return "it is not among the kinds";
}

Place::Place(BackendKind kind, std::uint64_t pool_bytes, bool own_files) {
  static int count = 0;
  options_.kind = kind;
  options_.root = fmt::format("{}pawl-backend-{}-{}", ::testing::TempDir(), ::getpid(), ++count);
  options_.pool = fmt::format("pawltest{}", ::getpid());
  options_.pool_bytes = pool_bytes;
  if (kind == BackendKind::dmthin && !own_files) {
    options_.data_device = variable("PAWL_TEST_DM_DATA");
    options_.metadata_device = variable("PAWL_TEST_DM_METADATA");
    if (!options_.data_device.empty()) wipe(options_.data_device);
    if (!options_.data_device.empty()) wipe(options_.metadata_device);
  }
  std::filesystem::remove_all(options_.root);
  std::filesystem::create_directories(options_.root);
}

Place::~Place() { clear(); }

std::unique_ptr<Backend> Place::open(const Step& step) const {
  auto backend = open_backend(options_, step);
  EXPECT_TRUE(backend) << backend.error().to_string();
  return *std::move(backend);
}

std::vector<std::string> Place::in_use() const {
  auto found = points_below(root());
  for (const auto& file : images_below(root())) {
    const auto device = find_loop(file);
    if (device && *device) found.push_back(**device + " on " + file);
  }
  if (options_.kind == BackendKind::dmthin) {
    for (const auto& name : mapped(options_.pool)) found.push_back(name);
  }
  return found;
}

std::vector<std::string> Place::leftovers() const {
  std::vector<std::string> found;
  for (const auto* directory : {"/mnt", "/writing"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root() + directory, error)) {
      found.push_back(entry.path().string());
    }
  }
  for (const auto* directory : {"/volumes", "/pool/volumes"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root() + directory, error)) {
      if (entry.path().filename().string().contains('.')) found.push_back(entry.path().string());
    }
  }
  return found;
}

void Place::clear() const {
  for (const auto& point : points_below(root() + "/mnt")) ::umount2(point.c_str(), MNT_DETACH);
  if (options_.kind == BackendKind::dmthin) {
    if (const auto mapper = DeviceMapper::open()) {
      for (const auto& name : mapped(options_.pool)) {
        if (const auto info = mapper->info(name); info && *info && (*info)->suspended && (*info)->live) {
          EXPECT_TRUE(mapper->resume(name));
        }
        EXPECT_TRUE(mapper->remove(name, std::chrono::seconds(10))) << name;
      }
    }
  }
  if (options_.kind != BackendKind::dir) {
    for (const auto& file : images_below(root() + "/pool")) {
      EXPECT_TRUE(detach_loop(file, std::chrono::seconds(10))) << file;
    }
    for (const auto& point : points_below(root())) {
      if (::umount2(point.c_str(), 0) != 0) ::umount2(point.c_str(), MNT_DETACH);
    }
    for (const auto& file : images_below(root())) {
      EXPECT_TRUE(detach_loop(file, std::chrono::seconds(10))) << file;
    }
  }
  EXPECT_TRUE(remove_tree(root()));
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

}  // namespace pawl::images::pools
