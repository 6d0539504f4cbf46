// SPDX-License-Identifier: Apache-2.0
// Images of ext4 as files in an XFS pool: a snapshot is a second file that shares its blocks. Each active one
// is a block device of its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "images/backend/directory_backend.hpp"
#include "images/backend/ext4.hpp"
#include "images/backend/loop.hpp"
#include "images/backend/mounts.hpp"
#include "images/backend/os.hpp"
#include "images/backend/pool_file.hpp"
#include "images/backend/tree.hpp"

namespace pawl::images::pools {
namespace {

/// Volumes promise more than the pool has, so a part of it is kept back for those that are in use.
constexpr std::uint64_t kFullPercent = 95;
constexpr std::uint32_t kExtentsAtOnce = 256;

std::string image_in(const std::string& place) { return place + "/volume.img"; }

/// What the file holds alone and what it shares.
Result<VolumeUsage> extents_of(const std::string& path) {
  PAWL_TRY(const auto file, open_file(path, O_RDONLY));
  std::vector<std::uint64_t> buffer((sizeof(fiemap) + kExtentsAtOnce * sizeof(fiemap_extent)) / 8 + 1);
  auto* const map = reinterpret_cast<fiemap*>(buffer.data());
  VolumeUsage usage;
  std::uint64_t at = 0;
  while (true) {
    std::ranges::fill(buffer, 0);
    map->fm_start = at;
    map->fm_length = FIEMAP_MAX_OFFSET - at;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = kExtentsAtOnce;
    if (::ioctl(file.get(), FS_IOC_FIEMAP, map) != 0) return fail(system_error("map the blocks of", path));
    if (map->fm_mapped_extents == 0) return usage;
    for (std::uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const auto& extent = map->fm_extents[i];
      (extent.fe_flags & FIEMAP_EXTENT_SHARED ? usage.shared : usage.exclusive) += extent.fe_length;
      at = extent.fe_logical + extent.fe_length;
      if (extent.fe_flags & FIEMAP_EXTENT_LAST) return usage;
    }
  }
}

class ReflinkContent final : public Content {
 public:
  ReflinkContent(const BackendOptions& options, Step step)
      : root_(options.root),
        busy_timeout_(options.busy_timeout),
        step_(step),
        pool_({.type = "xfs", .make_program = {"mkfs.xfs", "-q", "-f", "-m", "reflink=1"}}, options,
              std::move(step)) {}

  std::string_view name() const override { return "reflink"; }
  std::string volumes() const override { return pool_.point() + "/volumes"; }

  Result<void> attach() override {
    PAWL_CHECK(make_directories(root_ + "/mnt"));
    return pool_.attach();
  }
  Result<void> detach() override { return pool_.detach(); }
  Result<void> check_attached() override { return pool_.check_attached(); }
  Result<PoolUsage> pool() override { return pool_.usage(); }

  Result<void> extend(std::uint64_t bytes) override {
    PAWL_CHECK(pool_.grow(bytes));
    PAWL_CHECK(run_program({"xfs_growfs", pool_.point()}));
    return {};
  }

  Result<void> make(const std::string& place, const Volume& volume) override {
    PAWL_CHECK(check_room());
    PAWL_CHECK(make_sparse(image_in(place), volume.bytes));
    step_("make the image");
    PAWL_CHECK(make_ext4(image_in(place), volume));
    step_("make the file system");
    return {};
  }

  Result<void> copy(const std::string& from, const std::string& place, const Volume& copy) override {
    PAWL_CHECK(check_room());
    PAWL_TRY(const auto device, find_loop(image_in(from)));
    if (device) {  // what its users have written is in the cache of the device
      PAWL_TRY(const auto opened, open_file(*device, O_RDONLY));
      if (::fsync(opened.get()) != 0) return fail(system_error("flush", *device));
    }
    PAWL_TRY(const auto source, open_file(image_in(from), O_RDONLY));
    PAWL_TRY(const auto target, open_file(image_in(place), O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (::ioctl(target.get(), FICLONE, source.get()) != 0) return fail(system_error("clone", image_in(from)));
    step_("clone");
    if (::ftruncate(target.get(), static_cast<off_t>(copy.bytes)) != 0) {
      return fail(system_error("size", image_in(place)));
    }
    return {};
  }

  Result<void> erase(const std::string& place) override {
    // A crash may have left the device attached after the volume had its other name.
    PAWL_CHECK(detach_loop(image_in(place), busy_timeout_));
    return remove_tree(place);
  }

  Result<State> state(const std::string& place, const VolumeRecord& /*record*/) override {
    PAWL_TRY(auto device, find_loop(image_in(place)));
    if (!device) return State{};
    PAWL_TRY(const bool mounted, is_mounted_anywhere(*device));
    return State{.active = true, .mounted = mounted, .path = *std::move(device)};
  }

  Result<std::string> activate(const std::string& place, const VolumeRecord& /*record*/) override {
    PAWL_TRY(auto device, attach_loop(image_in(place)));
    step_("attach");
    return device;
  }

  Result<void> deactivate(const std::string& place, const VolumeRecord& /*record*/) override {
    PAWL_CHECK(detach_loop(image_in(place), busy_timeout_));
    step_("detach");
    return {};
  }

  Result<std::string> mount(const std::string& place, const VolumeRecord& record) override {
    PAWL_TRY(const auto device, activate(place, record));
    PAWL_CHECK(mount_device(device, point(record.id), "ext4", kExt4Settings));
    step_("mount");
    return point(record.id);
  }

  Result<void> flush(const std::string& place, const VolumeRecord& record) override {
    PAWL_TRY(const auto now, state(place, record));
    if (!now.mounted) return {};
    auto flushed = sync_file_system(point(record.id));
    if (flushed || check_room()) return flushed;
    return fail(Error(Code::pool_full, flushed.error().message()));
  }

  Result<void> unmount(const std::string& /*place*/, const VolumeRecord& record) override {
    PAWL_CHECK(unmount_device(point(record.id), busy_timeout_));
    step_("unmount");
    return {};
  }

  Result<VolumeUsage> usage(const std::string& place, const VolumeRecord& record) override {
    PAWL_TRY(auto usage, extents_of(image_in(place)));
    usage.id = record.id;
    return usage;
  }

 private:
  std::string point(std::uint32_t id) const { return fmt::format("{}/mnt/{}", root_, id); }

  Result<void> check_room() const {
    PAWL_TRY(const auto usage, pool_.usage());
    if (usage.used <= usage.bytes / 100 * kFullPercent) return {};
    return fail(Code::pool_full,
                fmt::format("{} of {} bytes of the pool are used; more than {} % is too much "
                            "to begin something new",
                            usage.used, usage.bytes, kFullPercent));
  }

  const std::string root_;
  const Duration busy_timeout_;
  Step step_;
  PoolFile pool_;
};

}  // namespace

std::unique_ptr<Backend> make_reflink_backend(const BackendOptions& options, const Step& step) {
  return std::make_unique<DirectoryBackend>(std::make_unique<ReflinkContent>(options, step), options.log,
                                            step);
}

}  // namespace pawl::images::pools
