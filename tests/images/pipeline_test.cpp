// SPDX-License-Identifier: Apache-2.0
// Images from their source to a snapshot, and what happens to them when something is not as it should be.

#include <chrono>
#include <cstdlib>

#include "images/names.hpp"
#include "tests/images/pipeline_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

ProcessResponse response(const pawl::Run& run) { return decode<ProcessResponse>(run.response).value(); }

std::string path_of(ImageWorld& world, const std::string& id) {
  return find_snapshot(world.query(), volume_name("snap", id)).value()->device_path;
}

struct ImagePipeline : testing::Test {
  ImageWorld world;
  std::string key = world.put("a.tar", good_image());

  pawl::Run part(std::string_view flow) { return world.flows().get(flow, "a").value(); }
};

TEST_F(ImagePipeline, TwoStartsOfOneImageAreOneRun) {
  const auto first = world.start(key, "a").value();
  const auto second = world.start(key, "a").value();
  EXPECT_TRUE(second.attached);
  EXPECT_EQ(first.ulid, second.ulid);
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
    EXPECT_EQ(content_of(path_of(world, name) + "/rootfs/etc/hostname"), name);
  }
  EXPECT_EQ(world.backend().list().value().size(), 100U);
  EXPECT_THAT(world.garbage(), IsEmpty());
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

TEST_F(ImagePipeline, AnObjectStoreThatIsAwayForAMinuteDoesNotFailARun) {
  world.trouble = Error(Code::source_failed, "no whole answer of the object store: connection refused");
  ASSERT_TRUE(world.start(key, "a"));
  ASSERT_FALSE(world.flows().wait(kProcess, "a", std::chrono::seconds(60)));
  world.trouble.reset();
  const auto run = world.ended(kProcess, "a");
  EXPECT_EQ(run.state, RunState::done) << run.error;
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
  EXPECT_TRUE(fs::is_empty(world.services().archives()));
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

TEST_F(ImagePipeline, WhatBelongsToNothingIsFoundAndCollected) {
  world.process(key, "a");
  ASSERT_TRUE(
      world.backend().create({.id = 77, .name = "orphan", .bytes = 1 << 20, .marker = make_marker()}));
  write_file(world.services().archives() + "/lost.tar.part", "x");
  ASSERT_TRUE(world.backend().remove(find_snapshot(world.query(), "snap-a").value()->volume.id));
  std::vector<GarbageKind> kinds;
  for (const auto& found : world.garbage()) kinds.push_back(found.kind);
  EXPECT_THAT(kinds,
              ElementsAre(GarbageKind::lost_snapshot, GarbageKind::unknown_volume, GarbageKind::orphan_file));
  const auto run = world.run(kCollect, "all", CollectRequest{});
  ASSERT_EQ(run.state, RunState::done) << run.error;
  EXPECT_EQ(decode<ActionReport>(run.response).value().actions.size(), 3U);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(find_image(world.query(), "a").value()->activation_status, ActivationStatus::inactive);
}

TEST_F(ImagePipeline, BadNamesAreRefusedBeforeAnythingIsDone) {
  for (const auto* bad : {"../a.tar", "a/./b.tar", "..", "", "a/.."}) {
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

}  // namespace
}  // namespace pawl::images::test
