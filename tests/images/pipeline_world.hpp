// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Images in a simulation: flows in virtual time, on real files and a real pool of any kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "images/flows.hpp"
#include "images/garbage.hpp"
#include "pawl/flow_kit.hpp"
#include "tests/images/backend_place.hpp"
#include "tests/images/s3_world.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images::test {

/// Counts who is inside, and holds those who come while it is closed. Thread-safe.
class ConcurrencyGate {
 public:
  void enter();
  void leave();
  void close();
  void open();
  /// Whether so many are inside at once, sooner or later.
  bool holds(int wanted);
  /// The most there ever were inside at once.
  int most() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int inside_ = 0;
  int most_ = 0;
};

/// What the real ones were asked to do.
struct Counts {
  std::atomic<int> fetched = 0;
  std::atomic<int> created = 0;
  std::atomic<int> mounted = 0;
  std::atomic<int> snapshots = 0;
  ConcurrencyGate fetches;
  ConcurrencyGate unpackings;  ///< from the first mount of a volume until it is unmounted

  int sum() const { return fetched + created + mounted + snapshots; }
  void clear() { fetched = created = mounted = snapshots = 0; }
};

/// A source that counts, and can be told to fail.
class CountingSource final : public Source {
 public:
  CountingSource(std::unique_ptr<Source> inner, Counts& counts, std::optional<Error>& trouble)
      : inner_(std::move(inner)), counts_(counts), trouble_(trouble) {}
  Result<ObjectInfo> look(const ObjectName& name, std::stop_token stop) override {
    return inner_->look({"", "/" + name.key}, std::move(stop));
  }
  /// Objects are files here, by their path without the first slash.
  Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                        const FetchOptions& options) override {
    ++counts_.fetched;
    if (trouble_) return fail(*trouble_);
    counts_.fetches.enter();
    auto fetched = inner_->fetch({"", "/" + name.key}, path, options);
    counts_.fetches.leave();
    return fetched;
  }

 private:
  std::unique_ptr<Source> inner_;
  Counts& counts_;
  std::optional<Error>& trouble_;
};

/// A back end that counts.
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, Counts& counts)
      : inner_(std::move(inner)), counts_(counts) {}
  std::string_view name() const override { return inner_->name(); }
  Result<void> attach() override { return inner_->attach(); }
  Result<void> detach() override { return inner_->detach(); }
  Result<PoolUsage> pool() override { return inner_->pool(); }
  Result<void> extend(std::uint64_t bytes) override { return inner_->extend(bytes); }
  Result<void> create(const Volume& volume) override {
    ++counts_.created;
    return inner_->create(volume);
  }
  Result<std::string> mount(const Volume& volume) override {
    ++counts_.mounted;
    if (note_mounted(volume.id)) counts_.unpackings.enter();
    return inner_->mount(volume);
  }
  Result<void> unmount(const Volume& volume) override {
    auto unmounted = inner_->unmount(volume);
    if (unmounted && forget_mounted(volume.id)) counts_.unpackings.leave();
    return unmounted;
  }
  Result<void> snapshot(const Volume& origin, const Volume& copy) override {
    ++counts_.snapshots;
    return inner_->snapshot(origin, copy);
  }
  Result<std::string> activate(const Volume& volume) override { return inner_->activate(volume); }
  Result<void> deactivate(const Volume& volume) override { return inner_->deactivate(volume); }
  Result<void> remove(std::uint32_t id) override { return inner_->remove(id); }
  Result<std::optional<FoundVolume>> find(const Volume& volume) override { return inner_->find(volume); }
  Result<std::vector<FoundVolume>> list() override { return inner_->list(); }
  Result<std::vector<VolumeUsage>> usage() override { return inner_->usage(); }

 private:
  /// True: it was not mounted.
  bool note_mounted(std::uint32_t id) {
    const std::lock_guard lock(mutex_);
    return mounted_.insert(id).second;
  }
  bool forget_mounted(std::uint32_t id) {
    const std::lock_guard lock(mutex_);
    return mounted_.erase(id) > 0;
  }

  std::unique_ptr<Backend> inner_;
  Counts& counts_;
  std::mutex mutex_;
  std::set<std::uint32_t> mounted_;
};

/// The files of an active snapshot: it is a directory, or a block device, which is mounted while this lives.
class SnapshotTree {
 public:
  explicit SnapshotTree(std::string device_path);
  SnapshotTree(const SnapshotTree&) = delete;
  SnapshotTree& operator=(const SnapshotTree&) = delete;
  ~SnapshotTree();

  const std::string& root() const { return root_; }
  std::string text(const std::string& name) const { return content_of(root_ + "/" + name); }

 private:
  std::string root_;
  bool mounted_ = false;
};

/// A small image that is as it should be.
inline TarBuilder good_image(std::string_view text = "hello") {
  TarBuilder tar;
  tar.directory("rootfs").directory("rootfs/etc").directory("rootfs/usr").directory("rootfs/var");
  tar.file("rootfs/etc/hostname", text).file("rootfs/usr/tool", std::string(70'000, 'x'), 0755);
  tar.symlink("rootfs/usr/link", "tool").hardlink("rootfs/usr/same", "rootfs/usr/tool").end();
  return tar;
}

/// The system's program in a simulation, with everything that it touches in one directory, and its pool,
/// where that is not made of directories, in a place of its own.
class ImageWorld {
 public:
  /// Crashes at that place, counted from 1; 0: nowhere.
  explicit ImageWorld(ImagesOptions options = {}, std::uint64_t crash_at = 0);

  FlowKit& kit() { return *kit_; }
  Flows& flows() { return kit_->flows(); }
  ImageServices& services() { return *services_; }
  Backend& backend() { return **services_->pool(); }
  Query query() {
    return [this](const Sql& statement) { return kit_->engine().query(statement); };
  }

  /// Puts an object into the bucket; its key.
  std::string put(const std::string& name, const TarBuilder& archive) {
    const auto path = this->path(name);
    write_file(path, archive.bytes());
    return path.substr(1);
  }
  std::string path(const std::string& name) const { return (place_.top() / name).string(); }

  /// Where the pool lies; of those that are not made of directories.
  const pools::Place& pool_place() const { return *pool_; }

  /// `device_size`: bytes; 0: as configured.
  Result<pawl::Run> start(const std::string& key, const std::string& id, std::int64_t device_size = 0) {
    PAWL_TRY(const auto request,
             encode(ProcessRequest{.s3_key = key, .image_id = id, .device_size = device_size}));
    return flows().start(kProcess, request, {.id = id});
  }
  pawl::Run ended(std::string_view flow, std::string_view id) { return flows().wait(flow, id).value(); }
  pawl::Run process(const std::string& key, const std::string& id, std::int64_t device_size = 0) {
    EXPECT_TRUE(start(key, id, device_size));
    return ended(kProcess, id);
  }
  template <class T>
  pawl::Run run(std::string_view flow, const std::string& id, const T& request) {
    EXPECT_TRUE(flows().start(flow, encode(request).value(), {.id = id}));
    return ended(flow, id);
  }

  std::vector<Garbage> garbage() {
    const auto get = [this](std::string_view flow, std::string_view id) { return flows().get(flow, id); };
    AttachedPools pools;
    for (const auto& name : services().pools()) pools[name] = *services().pool(name);
    return find_garbage(services(), pools, query(),
                        [&](std::string_view id) { return is_worked_on(id, get); })
        .value();
  }
  /// A statement from outside, as in a shell on the database.
  void by_hand(const std::string& statement) {
    EXPECT_EQ(run("by-hand", "x", Statement{statement}).state, RunState::done);
  }

  Counts counts;
  std::optional<Error> trouble;
  std::vector<std::string> logged;

 private:
  struct Statement {
    std::string text;
  };

  void set_up(Flows& flows);

  ArchivePlace place_{ArchivePlace::Kind::memory};
  std::optional<pools::Place> pool_;  ///< goes after everything that has it open
  ImagesOptions options_;
  std::optional<ImageServices> services_;
  std::optional<FlowKit> kit_;
};

}  // namespace pawl::images::test
