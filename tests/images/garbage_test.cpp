// SPDX-License-Identifier: Apache-2.0
// What is garbage and what only looks like it: while runs go on, after rows were lost, after removals were
// cut off.
#include <fmt/format.h>

#include <filesystem>
#include <tuple>
#include <utility>

#include "tests/images/scripted_world.hpp"

namespace pawl::images::test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

struct ImageGarbage : testing::Test {
  ScriptedWorld world;
  std::string key = world.put("a.tar", plain_image());

  /// Lets the run of image a stand still in a call, and looks at it there.
  void stop_in(std::string_view call) {
    world.script.before = [this, call](std::string_view name) {
      if (name == call) world.pass(10min);
    };
    world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
    ASSERT_FALSE(world.flows().wait(kProcess, "a", 5min)) << "it did not stand still";
  }
  /// Says that no run works on image a, after the run that did has succeeded.
  IsBusy busy_until_asked() {
    return [this](std::string_view) -> Result<bool> {
      EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
      return false;
    };
  }
  SnapshotRow snapshot() { return find_snapshot(world.query(), "snap-a").value().value(); }
};

TEST_F(ImageGarbage, ASnapshotThatIsRegisteredWhileItIsJudgedIsNoGarbage) {
  stop_in("snapshot");
  EXPECT_THAT(world.garbage(world.query(), busy_until_asked()), IsEmpty());
}

TEST_F(ImageGarbage, AnImageThatIsUnpackedWhileItIsJudgedIsNoGarbage) {
  stop_in("mount");
  EXPECT_THAT(world.garbage(world.query(), busy_until_asked()), IsEmpty());
}

TEST_F(ImageGarbage, AnArchiveThatIsStoredWhileItIsJudgedIsNoGarbage) {
  stop_in("create");
  // As if the row had been read a moment before the download ended.
  world.by_hand("UPDATE images SET download_status = 'downloading'");
  const auto busy = [this](std::string_view) -> Result<bool> {
    world.by_hand("UPDATE images SET download_status = 'completed'");
    EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
    return false;
  };
  EXPECT_THAT(world.garbage(world.query(), busy), IsEmpty());
}

TEST_F(ImageGarbage, AVolumeThatIsMadeAfterThePoolWasListedIsNotLost) {
  stop_in("snapshot");
  bool asked = false;
  const Query late = [&, inner = world.query()](const Sql& statement) {
    // The pool is listed before the tables are read: everything is made in between.
    if (!std::exchange(asked, true)) {
      EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
    }
    return inner(statement);
  };
  EXPECT_THAT(world.garbage(late), IsEmpty());
}

TEST_F(ImageGarbage, WhatARunThatFailedHasLeftIsAbandoned) {
  world.script.removing = [](const Volume&) { return fail(Code::volume_busy, "it is in use"); };
  TarBuilder flat;
  flat.file("etc/hostname", "x").end();
  EXPECT_EQ(world.process(world.put("flat.tar", flat), "flat").state, RunState::aborted);
  EXPECT_THAT(world.kinds(), ElementsAre(GarbageKind::abandoned_volume));
  EXPECT_THAT(decode<ActionReport>(world.collect().response)->actions, Contains(HasSubstr("left img")));
  world.script.removing = {};
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImageGarbage, ANewerRowOfTheSameImageIsNotForgottenWithTheLostOne) {
  world.process(key, "a");
  ASSERT_TRUE(world.backend().remove(find_unpacked(world.query(), "a").value()->volume.id));
  ASSERT_TRUE(world.backend().remove(snapshot().volume.id));
  ASSERT_TRUE(
      world.backend().create({.id = 77, .name = "orphan", .bytes = 64 << 20, .marker = make_marker()}));
  bool begun = false;
  world.script.removing = [&](const Volume& volume) -> Result<void> {
    // The lost ones come first, and are forgotten when everything is collected: meanwhile they are made anew.
    if (volume.id == 77 && !std::exchange(begun, true)) {
      EXPECT_EQ(world.process(key, "a").state, RunState::done);
    }
    return {};
  };
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_TRUE(begun);
  EXPECT_TRUE(find_unpacked(world.query(), "a").value());
  EXPECT_EQ(world.hostname(), "hello");
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImageGarbage, AFileThatIsBeingDownloadedAgainStays) {
  const auto file = world.services().archives() + "/a.tar.part";
  write_file(file, "x");
  bool begun = false;
  world.script.removing = [&](const Volume&) -> Result<void> {
    if (!std::exchange(begun, true))
      world.start(kDownload, "a", DownloadRequest{.s3_key = key, .image_id = "a"});
    return {};
  };
  // Removed first, and meanwhile a download begins.
  ASSERT_TRUE(
      world.backend().create({.id = 77, .name = "orphan", .bytes = 64 << 20, .marker = make_marker()}));
  world.script.before = [this](std::string_view call) {
    if (call == "fetch") world.pass(1min);
  };
  const auto run = world.collect();
  EXPECT_TRUE(begun);
  EXPECT_THAT(decode<ActionReport>(run.response)->actions,
              ElementsAre(HasSubstr("removed volume 77"), HasSubstr("which is in use now")));
  EXPECT_EQ(world.ended(kDownload, "a").state, RunState::done);
}

TEST_F(ImageGarbage, ALostRowOfAVolumeIsWrittenAgainAndTheVolumeStays) {
  world.process(key, "a");
  write_file(snapshot().device_path + "/rootfs/etc/hostname", "mine");
  world.by_hand("DELETE FROM images_volumes");
  EXPECT_THAT(world.kinds(), ElementsAre(GarbageKind::unlisted_volume, GarbageKind::unlisted_volume));
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(world.hostname(), "mine");
  EXPECT_EQ(count_volumes(world.query()).value(), 2U);
}

TEST_F(ImageGarbage, ANumberThatOnlyASnapshotRemembersIsNotGivenOutAgain) {
  world.process(key, "a");
  const auto highest = snapshot().volume.id;
  world.by_hand("DELETE FROM images_volumes");
  EXPECT_GT(world.services().allocate_volume_id(world.query()).value(), highest);
  EXPECT_EQ(highest_volume(world.query()).value(), highest);
}

TEST_F(ImageGarbage, ALostRowOfAnImageIsWrittenAgain) {
  world.process(key, "a");
  const auto before = find_image(world.query(), "a").value().value();
  world.by_hand("DELETE FROM images");
  EXPECT_THAT(world.kinds(), ElementsAre(GarbageKind::unlisted_image));
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  const auto after = find_image(world.query(), "a").value().value();
  EXPECT_EQ(std::tuple(after.s3_key, after.checksum, after.local_path, after.activation_status),
            std::tuple(before.s3_key, before.checksum, before.local_path, ActivationStatus::active));
  EXPECT_EQ(world.part(kDownload).state, RunState::done);
  world.process(key, "a");
  EXPECT_EQ(world.part(kDownload).state, RunState::handed_off) << "the archive is still good";
}

TEST_F(ImageGarbage, AnImageWhoseRowIsLostCanBeRemoved) {
  world.process(key, "a");
  world.by_hand("DELETE FROM images");
  EXPECT_EQ(world.run(kRemove, "a", RemoveRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImageGarbage, AnImageWhoseVolumesAreNotListedIsRemovedWithThem) {
  world.process(key, "a");
  world.by_hand("DELETE FROM images_volumes");
  EXPECT_EQ(world.run(kRemove, "a", RemoveRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(world.garbage(), IsEmpty());
}

struct LostTable : testing::TestWithParam<std::string> {};

TEST_P(LostTable, IsFoundAndHeals) {
  ScriptedWorld world;
  const auto key = world.put("a.tar", plain_image());
  world.process(key, "a");
  world.by_hand("DELETE FROM " + GetParam());
  EXPECT_FALSE(world.garbage().empty());
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::done) << run.error;
  EXPECT_EQ(world.hostname(), "hello");
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(world.backend().list().value().size(), 2U);
}

TEST_P(LostTable, IsHealedByProcessingAlone) {
  ScriptedWorld world;
  const auto key = world.put("a.tar", plain_image());
  world.process(key, "a");
  world.by_hand("DELETE FROM " + GetParam());
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::done) << run.error;
  EXPECT_EQ(world.hostname(), "hello");
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(world.hostname(), "hello");
}

INSTANTIATE_TEST_SUITE_P(Each, LostTable,
                         testing::Values("images", "unpacked_images", "snapshots", "images_volumes"),
                         [](const auto& info) { return info.param; });

/// A removal that was cut off behind the renaming.
void cut_off_removal(ScriptedWorld& world, std::uint32_t id) {
  const auto volumes = world.services().options().backend.root + "/volumes";
  fs::rename(fmt::format("{}/{}", volumes, id), fmt::format("{}/{}.removing", volumes, id));
}

TEST_F(ImageGarbage, WhatACutOffRemovalHasLeftIsFoundByTheNextOne) {
  world.process(key, "a");
  const auto volume = snapshot().volume;
  cut_off_removal(world, volume.id);
  const auto found = world.backend().find(volume).value();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->complete);
  EXPECT_EQ(world.run(kRemove, "a", RemoveRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

}  // namespace
}  // namespace pawl::images::test
