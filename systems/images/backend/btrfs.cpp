// SPDX-License-Identifier: Apache-2.0
// Subvolumes of a btrfs pool: a snapshot shares everything with its origin until one of them is written. The
// size of a volume is the limit of its quota group.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "images/backend/directory_backend.hpp"
#include "images/backend/marked.hpp"
#include "images/backend/os.hpp"
#include "images/backend/pool_file.hpp"
#include "images/backend/tree.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::string_view kTree = "tree";

/// Copies a name into one of the kernel's fixed fields, which is zero before.
template <std::size_t N>
void set_name(char (&field)[N], std::string_view name) {  // NOLINT(*-avoid-c-arrays)
  std::copy_n(name.begin(), std::min(name.size(), N - 1), std::begin(field));
}

Result<std::uint64_t> subvolume_id(int tree) {
  btrfs_ioctl_ino_lookup_args lookup{};
  lookup.objectid = BTRFS_FIRST_FREE_OBJECTID;
  if (::ioctl(tree, BTRFS_IOC_INO_LOOKUP, &lookup) != 0) return fail(system_error("look up", "a subvolume"));
  return lookup.treeid;
}

Result<void> limit_subvolume(const std::string& place, std::uint64_t bytes) {
  PAWL_TRY(const auto tree, open_file(place + "/tree", O_RDONLY | O_DIRECTORY));
  PAWL_TRY(const auto id, subvolume_id(tree.get()));
  btrfs_ioctl_qgroup_limit_args limit{};
  limit.qgroupid = id;
  limit.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  limit.lim.max_rfer = bytes;
  if (::ioctl(tree.get(), BTRFS_IOC_QGROUP_LIMIT, &limit) != 0) return fail(system_error("limit", place));
  return {};
}

/// What the quota group of a subvolume says: all bytes, and those that it has alone.
Result<btrfs_qgroup_info_item> quota_of(int tree, std::uint64_t id) {
  btrfs_ioctl_search_args search{};
  search.key.tree_id = BTRFS_QUOTA_TREE_OBJECTID;
  search.key.min_type = search.key.max_type = BTRFS_QGROUP_INFO_KEY;
  search.key.min_offset = search.key.max_offset = id;
  search.key.max_objectid = search.key.max_transid = ~std::uint64_t{0};
  search.key.nr_items = 1;
  if (::ioctl(tree, BTRFS_IOC_TREE_SEARCH, &search) != 0)
    return fail(system_error("read", "the quota of a subvolume"));
  btrfs_qgroup_info_item item{};
  if (search.key.nr_items == 0) {
    return fail(Code::volume_failed, fmt::format("the pool has no quota group for subvolume {}", id));
  }
  std::memcpy(&item, static_cast<const char*>(search.buf) + sizeof(btrfs_ioctl_search_header), sizeof item);
  return item;
}

class BtrfsContent final : public MarkedContent {
 public:
  BtrfsContent(const BackendOptions& options, const Step& step)
      : MarkedContent(step),
        pool_({.type = "btrfs", .make_program = {"mkfs.btrfs", "-q", "-f", "-m", "single"}}, options, step) {}

  std::string_view name() const override { return "btrfs"; }
  std::string volumes() const override { return pool_.point() + "/volumes"; }

  Result<void> attach() override {
    PAWL_CHECK(pool_.attach());
    PAWL_TRY(const auto top, open_file(pool_.point(), O_RDONLY | O_DIRECTORY));
    btrfs_ioctl_quota_ctl_args quota{};
    quota.cmd = BTRFS_QUOTA_CTL_ENABLE;
    if (::ioctl(top.get(), BTRFS_IOC_QUOTA_CTL, &quota) != 0 && errno != EEXIST) {
      return fail(system_error("enable quotas in", pool_.point()));
    }
    step("enable quotas");
    return {};
  }
  Result<void> detach() override { return pool_.detach(); }
  Result<void> check_attached() override { return pool_.check_attached(); }
  Result<PoolUsage> pool() override { return pool_.usage(); }

  Result<void> extend(std::uint64_t bytes) override {
    PAWL_CHECK(pool_.grow(bytes));
    PAWL_TRY(const auto top, open_file(pool_.point(), O_RDONLY | O_DIRECTORY));
    btrfs_ioctl_vol_args resize{};
    set_name(resize.name, "1:max");
    if (::ioctl(top.get(), BTRFS_IOC_RESIZE, &resize) != 0) return fail(system_error("grow", pool_.point()));
    return {};
  }

  Result<void> make(const std::string& place, const Volume& volume) override {
    PAWL_TRY(const auto directory, open_file(place, O_RDONLY | O_DIRECTORY));
    btrfs_ioctl_vol_args create{};
    set_name(create.name, kTree);
    if (::ioctl(directory.get(), BTRFS_IOC_SUBVOL_CREATE, &create) != 0) {
      return fail(system_error("make a subvolume in", place));
    }
    step("make the subvolume");
    PAWL_CHECK(limit_subvolume(place, volume.bytes));
    step("limit it");
    return {};
  }

  Result<void> copy(const std::string& from, const std::string& place, const Volume& copy) override {
    PAWL_TRY(const auto source, open_file(from + "/tree", O_RDONLY | O_DIRECTORY));
    PAWL_TRY(const auto directory, open_file(place, O_RDONLY | O_DIRECTORY));
    btrfs_ioctl_vol_args_v2 snapshot{};
    snapshot.fd = source.get();
    set_name(snapshot.name, kTree);
    if (::ioctl(directory.get(), BTRFS_IOC_SNAP_CREATE_V2, &snapshot) != 0) {
      return fail(system_error("make a snapshot in", place));
    }
    step("make the snapshot");
    PAWL_CHECK(limit_subvolume(place, copy.bytes));
    step("limit it");
    return {};
  }

  Result<void> erase(const std::string& place) override {
    if (exists(place + "/tree")) {
      PAWL_TRY(const auto directory, open_file(place, O_RDONLY | O_DIRECTORY));
      btrfs_ioctl_vol_args_v2 destroy{};
      set_name(destroy.name, kTree);
      if (::ioctl(directory.get(), BTRFS_IOC_SNAP_DESTROY_V2, &destroy) != 0) {
        return fail(system_error("delete the subvolume in", place));
      }
      step("delete the subvolume");
      // Its room comes back when the cleaner has gone over it. That looks only twice a minute, unless it is
      // poked; where that fails, it comes by itself.
      static_cast<void>(::ioctl(directory.get(), BTRFS_IOC_SYNC));
    }
    return remove_tree(place);
  }

  Result<VolumeUsage> usage(const std::string& place, const VolumeRecord& record) override {
    PAWL_TRY(const auto tree, open_file(place + "/tree", O_RDONLY | O_DIRECTORY));
    // The figures are those of the last commit.
    if (::syncfs(tree.get()) != 0) return fail(system_error("make durable what is in", place));
    PAWL_TRY(const auto id, subvolume_id(tree.get()));
    PAWL_TRY(const auto item, quota_of(tree.get(), id));
    const std::uint64_t all = item.rfer;
    const std::uint64_t alone = item.excl;
    return VolumeUsage{.id = record.id, .exclusive = alone, .shared = all - std::min(all, alone)};
  }

 private:
  PoolFile pool_;
};

}  // namespace

std::unique_ptr<Backend> make_btrfs_backend(const BackendOptions& options, const Step& step) {
  return std::make_unique<DirectoryBackend>(std::make_unique<BtrfsContent>(options, step), options.log, step);
}

}  // namespace pawl::images::pools
