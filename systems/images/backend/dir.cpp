// SPDX-License-Identifier: Apache-2.0
// Plain directories: no privileges, no sharing. A snapshot is a copy, whose files share their contents where
// the file system can do that.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "images/backend/directory_backend.hpp"
#include "images/backend/marked.hpp"
#include "images/backend/os.hpp"
#include "images/backend/tree.hpp"

namespace pawl::images::pools {
namespace {

class DirContent final : public MarkedContent {
 public:
  DirContent(std::string root, Step step) : MarkedContent(std::move(step)), root_(std::move(root)) {}

  std::string_view name() const override { return "dir"; }
  std::string volumes() const override { return root_ + "/volumes"; }

  Result<void> attach() override { return make_directories(volumes()); }
  Result<void> detach() override { return {}; }

  Result<void> check_attached() override {
    if (exists(volumes())) return {};
    return fail(Code::backend_unavailable, fmt::format("there is no pool in {}; attach makes it", root_));
  }

  Result<PoolUsage> pool() override {
    struct statvfs space{};
    if (::statvfs(root_.c_str(), &space) != 0) return fail(system_error("look at", root_));
    PoolUsage usage{.bytes = space.f_blocks * space.f_frsize,
                    .used = (space.f_blocks - space.f_bavail) * space.f_frsize,
                    .writable = (space.f_flag & ST_RDONLY) == 0};
    if (!usage.writable) usage.problems.push_back(fmt::format("the file system of {} is read-only", root_));
    return usage;
  }

  Result<void> extend(std::uint64_t bytes) override {
    return fail(
        Code::invalid_argument,
        fmt::format("a pool of directories is as large as the file system of {}; it cannot be made {} "
                    "bytes large",
                    root_, bytes));
  }

  Result<void> make(const std::string& place, const Volume& /*volume*/) override {
    const auto tree = place + "/tree";
    if (::mkdir(tree.c_str(), 0755) != 0) return fail(system_error("make the directory", tree));
    step("mkdir of the tree");
    return {};
  }

  Result<void> copy(const std::string& from, const std::string& place, const Volume& copy) override {
    PAWL_CHECK(make(place, copy));
    PAWL_CHECK(copy_tree(from + "/tree", place + "/tree"));
    step("copy");
    return {};
  }

  Result<void> erase(const std::string& place) override { return remove_tree(place); }

  Result<VolumeUsage> usage(const std::string& place, const VolumeRecord& record) override {
    PAWL_TRY(const auto bytes, tree_bytes(place + "/tree"));
    return VolumeUsage{.id = record.id, .exclusive = bytes, .shared = 0};
  }

 private:
  const std::string root_;
};

}  // namespace

std::unique_ptr<Backend> make_dir_backend(const BackendOptions& options, const Step& step) {
  return std::make_unique<DirectoryBackend>(std::make_unique<DirContent>(options.root, step), options.log,
                                            step);
}

}  // namespace pawl::images::pools
