// SPDX-License-Identifier: Apache-2.0
// What the pipeline promises on every kind of pool. What does not touch the pool is tested on one of them, in
// pipeline_test.cpp.
#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "images/backend/os.hpp"
#include "images/names.hpp"
#include "tests/images/pipeline_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

ProcessResponse made_by(const pawl::Run& run) { return decode<ProcessResponse>(run.response).value(); }

std::string hostname_at(const std::string& device_path) {
  return SnapshotTree(device_path).text("rootfs/etc/hostname");
}

SnapshotRow snapshot_of_a(ImageWorld& world) {
  return find_snapshot(world.query(), "snap-a").value().value();
}

class Kinds : public testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (const auto why = pools::obstacle(GetParam()); !why.empty()) {
      GTEST_SKIP() << pools::kind_name(GetParam()) << " cannot run here: " << why;
    }
  }
};

class ImageOnEachPool : public Kinds {
 protected:
  void SetUp() override {
    Kinds::SetUp();
    if (IsSkipped()) return;
    world_.emplace(ImagesOptions{.backend = {.kind = GetParam()}});
    key = world_->put("a.tar", good_image());
  }
  ImageWorld& world() { return *world_; }
  pawl::Run part(std::string_view flow) { return world().flows().get(flow, "a").value(); }

  std::string key;

 private:
  std::optional<ImageWorld> world_;
};

TEST_P(ImageOnEachPool, AnImageIsDownloadedUnpackedAndActivated) {
  const auto run = world().process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const auto made = made_by(run);
  EXPECT_TRUE(made.downloaded && made.unpacked && made.activated);
  EXPECT_EQ(made.checksum, sha256_hex(good_image().bytes()));
  EXPECT_EQ(hostname_at(made.device_path), "hello");
  const auto row = find_image(world().query(), "a").value().value();
  EXPECT_EQ(row.download_status, DownloadStatus::completed);
  EXPECT_EQ(row.activation_status, ActivationStatus::active);
  EXPECT_THAT(world().garbage(), IsEmpty());
}

TEST_P(ImageOnEachPool, TheTreeOfTheSnapshotIsWhatGnuTarMakesOfTheArchive) {
  const auto made = made_by(world().process(key, "a"));
  const auto expected = world().path("expected");
  fs::create_directory(expected);
  ASSERT_EQ(run_command({"tar", "-xpf", world().path("a.tar"), "--delay-directory-restore", "-C", expected}),
            0);
  const SnapshotTree tree(made.device_path);
  EXPECT_EQ(describe_tree(expected + "/rootfs"), describe_tree(tree.root() + "/rootfs"));
  EXPECT_EQ(run_command({"diff", "-r", "--no-dereference", "-x", "lost+found", expected, tree.root()}), 0);
}

TEST_P(ImageOnEachPool, AFinishedPipelineRunAgainTouchesNothing) {
  world().process(key, "a");
  world().counts.clear();
  const auto run = world().process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const auto made = made_by(run);
  EXPECT_FALSE(made.downloaded || made.unpacked || made.activated);
  EXPECT_EQ(part(kDownload).state, RunState::handed_off);
  EXPECT_EQ(part(kUnpack).state, RunState::handed_off);
  EXPECT_EQ(part(kActivate).state, RunState::handed_off);
  EXPECT_EQ(world().counts.sum(), 0);
}

TEST_P(ImageOnEachPool, AVolumeThatWasRemovedByHandIsMadeAnew) {
  world().process(key, "a");
  const auto before = find_unpacked(world().query(), "a").value().value();
  ASSERT_TRUE(world().backend().remove(before.volume.id));
  ASSERT_TRUE(world().backend().remove(snapshot_of_a(world()).volume.id));
  const auto run = world().process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_FALSE(made_by(run).downloaded);
  EXPECT_TRUE(made_by(run).unpacked && made_by(run).activated);
  EXPECT_NE(find_unpacked(world().query(), "a").value()->volume.id, before.volume.id);
  EXPECT_EQ(hostname_at(snapshot_of_a(world()).device_path), "hello");
}

TEST_P(ImageOnEachPool, ARowThatWasRemovedByHandIsMadeAnewAndItsVolumeIsFound) {
  world().process(key, "a");
  world().by_hand("DELETE FROM unpacked_images");
  const auto run = world().process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  ASSERT_FALSE(world().garbage().empty());
  EXPECT_EQ(world().run(kCollect, "all", CollectRequest{}).state, RunState::done);
  EXPECT_THAT(world().garbage(), IsEmpty());
  EXPECT_EQ(hostname_at(snapshot_of_a(world()).device_path), "hello");
}

TEST_P(ImageOnEachPool, ActivatingAnImageWhoseVolumeIsGoneAborts) {
  world().process(key, "a");
  ASSERT_TRUE(world().backend().remove(find_unpacked(world().query(), "a").value()->volume.id));
  const auto run = world().run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "second"});
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("volume_missing"));
  EXPECT_FALSE(find_snapshot(world().query(), "second").value());
}

TEST_P(ImageOnEachPool, AnImageMayHaveSeveralSnapshotsThatKnowNothingOfEachOther) {
  world().process(key, "a");
  const auto run = world().run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "second"});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const SnapshotTree second(decode<ActivateResponse>(run.response).value().device_path);
  write_file(second.root() + "/rootfs/etc/hostname", "changed");
  EXPECT_EQ(hostname_at(snapshot_of_a(world()).device_path), "hello");
}

TEST_P(ImageOnEachPool, ADeactivatedSnapshotIsTakenIntoUseAgain) {
  world().process(key, "a");
  write_file(SnapshotTree(snapshot_of_a(world()).device_path).root() + "/rootfs/etc/hostname", "mine");
  EXPECT_EQ(world().run(kDeactivate, "a", DeactivateRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_EQ(find_image(world().query(), "a").value()->activation_status, ActivationStatus::inactive);
  EXPECT_EQ(world().run(kActivate, "a", ActivateRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_EQ(find_image(world().query(), "a").value()->activation_status, ActivationStatus::active);
  EXPECT_EQ(hostname_at(snapshot_of_a(world()).device_path), "mine") << "it is the same snapshot";
}

TEST_P(ImageOnEachPool, ARemovedImageLeavesNothing) {
  world().process(key, "a");
  const auto run = world().run(kRemove, "a", RemoveRequest{.image_id = "a"});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_THAT(world().backend().list().value(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(world().services().archives()));
  EXPECT_FALSE(find_image(world().query(), "a").value());
  EXPECT_THAT(list_volumes(world().query()).value(), IsEmpty());
  EXPECT_EQ(world().process(key, "a").state, RunState::done) << "and can be had again";
}

const auto kName = [](const auto& info) { return pools::kind_name(info.param); };
const auto kAll =
    testing::Values(BackendKind::dir, BackendKind::reflink, BackendKind::btrfs, BackendKind::dmthin);
/// Those that are smaller than what they lie on.
const auto kPools = testing::Values(BackendKind::reflink, BackendKind::btrfs, BackendKind::dmthin);

INSTANTIATE_TEST_SUITE_P(Each, ImageOnEachPool, kAll, kName);

/// A pool with less room than an image of 80 MiB needs, and how large it is.
class ImageInASmallPool : public Kinds {
 protected:
  static constexpr std::int64_t kDeviceSize = 256 * pools::kMiB;
  static constexpr std::size_t kContent = 80 * pools::kMiB;

  /// The smallest that its file system allows.
  std::uint64_t pool_bytes() const { return (GetParam() == BackendKind::dmthin ? 64 : 320) * pools::kMiB; }

  /// Takes what a larger pool has too much.
  void take_room(ImageWorld& world) const {
    if (GetParam() == BackendKind::dmthin) return;
    const auto file = pools::open_file(world.pool_place().root() + "/pool/filler", O_WRONLY | O_CREAT);
    ASSERT_TRUE(file) << file.error().to_string();
    ASSERT_EQ(::posix_fallocate(file->get(), 0, 200 * pools::kMiB), 0);
  }

  /// btrfs gives the room of a subvolume back a little after it has said that it is gone: there an image that
  /// finds none is tried again.
  RunState process_when_there_is_room(ImageWorld& world, const std::string& key,
                                      const std::string& id) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
      const auto run = world.process(key, id);
      const bool full = run.error.find("pool_full") != std::string::npos;
      const bool again = GetParam() == BackendKind::btrfs && full && std::chrono::steady_clock::now() < end;
      if (!again) return run.state;
    }
  }

  static TarBuilder large_image() {
    TarBuilder tar;
    tar.directory("rootfs").directory("rootfs/etc").directory("rootfs/usr").directory("rootfs/var");
    tar.file("rootfs/usr/large", std::string(kContent, 'x')).end();
    return tar;
  }
};

TEST_P(ImageInASmallPool, AnImageThatFillsThePoolAbortsSaysSoAndGivesTheRoomBack) {
  ImageWorld world({.backend = {.kind = GetParam(), .pool_bytes = pool_bytes()}});
  const auto small = world.put("small.tar", good_image());
  ASSERT_EQ(world.process(small, "small").state, RunState::done);
  take_room(world);
  const auto run = world.process(world.put("large.tar", large_image()), "large", kDeviceSize);
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("pool_full"));
  EXPECT_THAT(world.flows().get(kUnpack, "large").value().cleanup_errors, IsEmpty());
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(world.backend().list().value().size(), 2U) << "what was there is still there, and nothing else";
  const auto second = world.put("second.tar", good_image("second"));
  EXPECT_EQ(process_when_there_is_room(world, second, "second"), RunState::done)
      << "a small one has room again";
}

INSTANTIATE_TEST_SUITE_P(Each, ImageInASmallPool, kPools, kName);

/// What is visible from outside of an image that is processed.
std::string view_from_outside(ImageWorld& world) {
  std::string seen;
  const auto snapshots = list_snapshots(world.query()).value();
  for (const auto& row : snapshots) {
    seen += row.volume.name + " " + (row.active ? hostname_at(row.device_path) : "inactive");
  }
  int active = 0;
  int mounted = 0;
  const auto found = world.backend().list().value();
  for (const auto& volume : found) {
    active += volume.active ? 1 : 0;
    mounted += volume.mounted ? 1 : 0;
  }
  seen += fmt::format(" volumes {} active {} mounted {} garbage {}", found.size(), active, mounted,
                      world.garbage().size());
  const auto volumes = list_volumes(world.query()).value();
  for (const auto& row : volumes) {
    seen += row.state == VolumeState::made ? " made" : " not made";
  }
  return seen;
}

/// Pools of which each costs a file system are crashed at some of the places, other ones in each run of the
/// tests; at all of them where the environment asks for that.
std::uint64_t stride_of(BackendKind kind) {
  const char* every = std::getenv("PAWL_TEST_EVERY_CRASH");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return kind == BackendKind::dir || every != nullptr ? 1 : 9;
}

class ImageCrash : public Kinds {
 protected:
  /// Processes an image in a world that crashes at this place. True: it did.
  static bool survives(BackendKind kind, std::uint64_t place) {
    ImageWorld world({.backend = {.kind = kind}}, place);
    const auto key = world.put("a.tar", good_image());
    const auto done = world.kit().survive([&](Flows&) -> Result<void> {
      if (!world.flows().get(kProcess, "a")) PAWL_CHECK(world.start(key, "a"));
      PAWL_TRY(const auto run, world.flows().wait(kProcess, "a"));
      if (run.state != RunState::done) return fail(Code::internal, run.error);
      return {};
    });
    EXPECT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(view_from_outside(world), "snap-a hello volumes 2 active 1 mounted 0 garbage 0 made made");
    return world.kit().simulation().crashes() > 0;
  }
};

TEST_P(ImageCrash, WhereverThePipelineCrashesItArrivesAndLeavesNothingBehind) {
  const auto stride = stride_of(GetParam());
  const auto first = 1 + std::random_device()() % stride;
  std::uint64_t place = first;
  for (; !HasFailure(); place += stride) {
    SCOPED_TRACE("crashed at place " + std::to_string(place));
    if (!survives(GetParam(), place)) break;
  }
  EXPECT_GE(place, 30U);
}

INSTANTIATE_TEST_SUITE_P(Each, ImageCrash, kAll, kName);

}  // namespace
}  // namespace pawl::images::test
