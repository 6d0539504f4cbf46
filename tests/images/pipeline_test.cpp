// SPDX-License-Identifier: Apache-2.0
// Images from their source to a snapshot, and what happens to them when something is not as it should be.
#include <array>
#include <cstdlib>
#include <fstream>

#include "images/names.hpp"
#include "tests/images/pipeline_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

struct ImagePipeline : testing::Test {
  ImageWorld world;
  std::string key = world.put("a.tar", good_image());

  ProcessResponse response(const pawl::Run& run) { return decode<ProcessResponse>(run.response).value(); }
  std::string path_of(const std::string& id) {
    return find_snapshot(world.query(), volume_name("snap", id)).value()->device_path;
  }
  pawl::Run part(std::string_view flow, const std::string& id = "a") {
    return world.flows().get(flow, id).value();
  }
};

TEST_F(ImagePipeline, AnImageIsDownloadedUnpackedAndActivated) {
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const auto made = response(run);
  EXPECT_TRUE(made.downloaded && made.unpacked && made.activated);
  EXPECT_EQ(made.checksum, sha256_hex(good_image().bytes()));
  EXPECT_EQ(content_of(made.device_path + "/rootfs/etc/hostname"), "hello");
  const auto row = find_image(world.query(), "a").value().value();
  EXPECT_EQ(row.download_status, DownloadStatus::completed);
  EXPECT_EQ(row.activation_status, ActivationStatus::active);
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImagePipeline, TheTreeOfTheSnapshotIsWhatGnuTarMakesOfTheArchive) {
  const auto made = response(world.process(key, "a"));
  const auto expected = world.path("expected");
  fs::create_directory(expected);
  ASSERT_EQ(std::system(("tar -xpf '" + world.path("a.tar") + "' -C '" + expected + "'").c_str()), 0);
  EXPECT_EQ(std::system(("diff -r --no-dereference '" + expected + "' '" + made.device_path + "'").c_str()),
            0);
}

TEST_F(ImagePipeline, AFinishedPipelineRunAgainTouchesNothing) {
  world.process(key, "a");
  world.counts = {};
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const auto made = response(run);
  EXPECT_FALSE(made.downloaded || made.unpacked || made.activated);
  EXPECT_EQ(part(kDownload).state, RunState::handed_off);
  EXPECT_EQ(part(kUnpack).state, RunState::handed_off);
  EXPECT_EQ(part(kActivate).state, RunState::handed_off);
  EXPECT_EQ(world.counts.fetched + world.counts.created + world.counts.mounted + world.counts.snapshots, 0);
}

TEST_F(ImagePipeline, TwoStartsOfOneImageAreOneRun) {
  const auto first = world.start(key, "a").value();
  const auto second = world.start(key, "a").value();
  EXPECT_TRUE(second.attached);
  EXPECT_EQ(first.run, second.run);
  EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
  EXPECT_EQ(world.counts.fetched, 1);
}

TEST_F(ImagePipeline, FiftyImagesAtOnceAllArriveEachInItsOwnVolume) {
  for (int i = 0; i < 50; ++i) {
    const auto name = "img" + std::to_string(i);
    ASSERT_TRUE(world.start(world.put(name + ".tar", good_image(name)), name));
  }
  for (int i = 0; i < 50; ++i) {
    const auto name = "img" + std::to_string(i);
    const auto run = world.ended(kProcess, name);
    ASSERT_EQ(run.state, RunState::done) << run.error;
    EXPECT_EQ(content_of(path_of(name) + "/rootfs/etc/hostname"), name);
  }
  EXPECT_EQ(world.backend().list().value().size(), 100U);
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImagePipeline, AVolumeThatWasRemovedByHandIsMadeAnew) {
  world.process(key, "a");
  const auto before = find_unpacked(world.query(), "a").value().value();
  ASSERT_TRUE(world.backend().remove(before.volume.id));
  ASSERT_TRUE(world.backend().remove(find_snapshot(world.query(), "snap-a").value()->volume.id));
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_FALSE(response(run).downloaded);
  EXPECT_TRUE(response(run).unpacked && response(run).activated);
  EXPECT_NE(find_unpacked(world.query(), "a").value()->volume.id, before.volume.id);
  EXPECT_EQ(content_of(path_of("a") + "/rootfs/etc/hostname"), "hello");
}

TEST_F(ImagePipeline, ARowThatWasRemovedByHandIsMadeAnewAndItsVolumeIsFound) {
  world.process(key, "a");
  world.by_hand("DELETE FROM images_unpacked");
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  ASSERT_FALSE(world.garbage().empty());
  EXPECT_EQ(world.run(kCollect, "all", CollectRequest{}).state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(content_of(path_of("a") + "/rootfs/etc/hostname"), "hello");
}

TEST_F(ImagePipeline, AnArchiveThatWasChangedByHandIsDownloadedAgain) {
  world.process(key, "a");
  const auto archive = find_image(world.query(), "a").value()->local_path;
  auto bytes = content_of(archive);
  bytes[600] = static_cast<char>(bytes[600] ^ 1);
  write_file(archive, bytes);
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_TRUE(response(run).downloaded);
  EXPECT_FALSE(response(run).unpacked) << "the content is the same";
}

TEST_F(ImagePipeline, AMissingObjectAbortsAndTheOthersAreNotBegun) {
  const auto run = world.process("tmp/no/such.tar", "a");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("download-image aborted at download"));
  EXPECT_EQ(part(kUnpack).state, RunState::cancelled);
  EXPECT_EQ(part(kActivate).state, RunState::cancelled);
  EXPECT_EQ(find_image(world.query(), "a").value()->download_status, DownloadStatus::failed);
}

TEST_F(ImagePipeline, ASourceThatFailsIsTriedSixTimes) {
  world.trouble = Error(Code::source_failed, "503 Slow Down");
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("503 Slow Down"));
  EXPECT_EQ(world.counts.fetched, 6) << "five retries";
}

TEST_F(ImagePipeline, ASourceThatDeniesIsNotAskedAgain) {
  world.trouble = Error(Code::source_denied, "403 AccessDenied");
  EXPECT_EQ(world.process(key, "a").state, RunState::aborted);
  EXPECT_EQ(world.counts.fetched, 1);
}

TEST_F(ImagePipeline, AHostileArchiveAbortsIsReportedAndLeavesNothing) {
  TarBuilder hostile;
  hostile.file("../outside", "x").end();
  const auto run = world.process(world.put("hostile.tar", hostile), "bad");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("parent_path"));
  EXPECT_THAT(world.logged, Contains("security violation"));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(world.shop().archives()));
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImagePipeline, AnImageWithoutARootFileSystemAbortsAndItsVolumeIsRemoved) {
  TarBuilder flat;
  flat.file("etc/hostname", "x").end();
  const auto run = world.process(world.put("flat.tar", flat), "flat");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("verify-layout"));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(list_volumes(world.query()).value(), IsEmpty());
}

TEST_F(ImagePipeline, AnotherObjectUnderTheIdOfAnImageIsRefused) {
  world.process(key, "a");
  const auto run = world.process(world.put("b.tar", good_image("b")), "a");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("another object needs another id"));
}

TEST_F(ImagePipeline, AnIdThatThePoolHasForSomethingElseIsLeftAndTheNextIsTaken) {
  ASSERT_TRUE(
      world.backend().create({.id = 1, .name = "strange", .bytes = 1 << 20, .marker = make_marker()}));
  const auto run = world.process(key, "a");
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_NE(find_unpacked(world.query(), "a").value()->volume.id, 1U);
  const auto volumes = list_volumes(world.query(), "a").value();
  EXPECT_EQ(volumes.front().state, VolumeState::faulty);
}

TEST_F(ImagePipeline, ActivatingAnImageWhoseVolumeIsGoneAborts) {
  world.process(key, "a");
  ASSERT_TRUE(world.backend().remove(find_unpacked(world.query(), "a").value()->volume.id));
  const auto run = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "second"});
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("volume_missing"));
  EXPECT_FALSE(find_snapshot(world.query(), "second").value());
}

TEST_F(ImagePipeline, AnImageMayHaveSeveralSnapshotsThatKnowNothingOfEachOther) {
  world.process(key, "a");
  const auto run = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "second"});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  const auto second = decode<ActivateResponse>(run.response).value().device_path;
  write_file(second + "/rootfs/etc/hostname", "changed");
  EXPECT_EQ(content_of(path_of("a") + "/rootfs/etc/hostname"), "hello");
}

TEST_F(ImagePipeline, ADeactivatedSnapshotIsTakenIntoUseAgain) {
  world.process(key, "a");
  write_file(path_of("a") + "/rootfs/etc/hostname", "mine");
  EXPECT_EQ(world.run(kDeactivate, "a", DeactivateRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_EQ(find_image(world.query(), "a").value()->activation_status, ActivationStatus::inactive);
  EXPECT_EQ(world.run(kActivate, "a", ActivateRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_EQ(find_image(world.query(), "a").value()->activation_status, ActivationStatus::active);
  EXPECT_EQ(content_of(path_of("a") + "/rootfs/etc/hostname"), "mine") << "it is the same snapshot";
}

TEST_F(ImagePipeline, ARemovedImageLeavesNothing) {
  world.process(key, "a");
  const auto run = world.run(kRemove, "a", RemoveRequest{.image_id = "a"});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(world.shop().archives()));
  EXPECT_FALSE(find_image(world.query(), "a").value());
  EXPECT_THAT(list_volumes(world.query()).value(), IsEmpty());
  EXPECT_EQ(world.process(key, "a").state, RunState::done) << "and can be had again";
}

TEST_F(ImagePipeline, WhatBelongsToNothingIsFoundAndCollected) {
  world.process(key, "a");
  ASSERT_TRUE(
      world.backend().create({.id = 77, .name = "orphan", .bytes = 1 << 20, .marker = make_marker()}));
  write_file(world.shop().archives() + "/lost.tar.part", "x");
  ASSERT_TRUE(world.backend().remove(find_snapshot(world.query(), "snap-a").value()->volume.id));
  std::vector<GarbageKind> kinds;
  for (const auto& found : world.garbage()) kinds.push_back(found.kind);
  EXPECT_THAT(kinds,
              ElementsAre(GarbageKind::lost_snapshot, GarbageKind::unknown_volume, GarbageKind::stray_file));
  const auto run = world.run(kCollect, "all", CollectRequest{});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_EQ(decode<Deeds>(run.response).value().deeds.size(), 3U);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(find_image(world.query(), "a").value()->activation_status, ActivationStatus::inactive);
}

TEST_F(ImagePipeline, BadNamesAreRefusedBeforeAnythingIsDone) {
  for (const auto* bad : {"../a.tar", "/a.tar", "a//b.tar", "", "a b.tar"}) {
    const auto run = world.process(bad, "a");
    EXPECT_EQ(run.state, RunState::aborted) << bad;
    EXPECT_THAT(run.error, HasSubstr("invalid_argument")) << bad;
  }
  EXPECT_EQ(world.counts.fetched, 0);
}

TEST(ImagePool, AFullPoolRefusesBeforeAnythingIsMade) {
  ImageWorld world({.full = 0.0});
  const auto run = world.process(world.put("a.tar", good_image()), "a");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("pool_full"));
  EXPECT_EQ(world.counts.created, 0);
  EXPECT_THAT(list_volumes(world.query()).value(), IsEmpty());
}

/// What somebody who looks from outside sees of an image that has arrived.
std::string view_from_outside(ImageWorld& world) {
  std::string seen;
  const auto snapshots = list_snapshots(world.query()).value();
  for (const auto& row : snapshots) {
    seen += row.volume.name + " " +
            (row.active ? content_of(row.device_path + "/rootfs/etc/hostname") : "inactive");
  }
  seen += " volumes " + std::to_string(world.backend().list().value().size());
  seen += " garbage " + std::to_string(world.garbage().size());
  const auto volumes = list_volumes(world.query()).value();
  for (const auto& row : volumes) {
    seen += row.state == VolumeState::made ? " made" : " not made";
  }
  return seen;
}

TEST(ImageCrash, WhereverThePipelineCrashesItArrivesAndLeavesNothingBehind) {
  const std::string expected = "snap-a hello volumes 2 garbage 0 made made";
  std::uint64_t places = 0;
  for (std::uint64_t place = 1;; ++place) {
    ImageWorld world({}, place);
    const auto key = world.put("a.tar", good_image());
    const auto done = world.kit().survive([&](Flows&) -> Result<void> {
      if (!world.flows().get(kProcess, "a")) PAWL_CHECK(world.start(key, "a"));
      PAWL_TRY(const auto run, world.flows().wait(kProcess, "a"));
      if (run.state != RunState::done) return fail(Code::internal, run.error);
      return {};
    });
    ASSERT_TRUE(done) << "place " << place << ": " << done.error().to_string();
    ASSERT_EQ(view_from_outside(world), expected) << "place " << place;
    if (world.kit().simulation().crashes() == 0) break;
    ++places;
  }
  EXPECT_GE(places, 30U);
}

}  // namespace
}  // namespace pawl::images::test
