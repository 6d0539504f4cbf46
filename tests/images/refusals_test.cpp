// SPDX-License-Identifier: Apache-2.0
// What runs of images refuse, wait for and give up: time that is over, pools that are full, requests that
// contradict each other.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "tests/images/scripted_world.hpp"

namespace pawl::images::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

struct ImageRefusal : testing::Test {
  ScriptedWorld world;
  std::string key = world.put("a.tar", plain_image());

  /// The first call of this name takes so long.
  void delay(std::string_view call, Duration time) {
    world.script.before = [this, call, time, done = false](std::string_view name) mutable {
      if (name == call && !std::exchange(done, true)) world.pass(time);
    };
  }
  pawl::Run download(const std::string& id = "a") {
    return world.run(kDownload, id, DownloadRequest{.s3_key = key, .image_id = id});
  }
  SnapshotRow snapshot(const std::string& name = "snap-a") {
    return find_snapshot(world.query(), name).value().value();
  }
};

// Time.

struct ImageTime : ImageRefusal {
  /// Unpacking takes so long, and is aborted.
  void expect_abort_after(Duration time) {
    delay("mount", time);
    const auto run = world.process(key, "a");
    EXPECT_EQ(run.state, RunState::aborted);
    EXPECT_THAT(run.error, HasSubstr("unpacking took longer than"));
    EXPECT_EQ(world.part(kUnpack).state, RunState::aborted);
    EXPECT_THAT(world.backend().list().value(), IsEmpty());
    EXPECT_THAT(world.garbage(), IsEmpty());
    EXPECT_EQ(world.process(key, "a").state, RunState::done) << "another run has its own time";
  }
};

TEST_F(ImageTime, UnpackingThatTakesTooLongIsAbortedAndCleanedUp) { expect_abort_after(30min + 1s); }

TEST_F(ImageTime, UnpackingThatTakesTooLongAndDoesNotStopIsAbortedToo) { expect_abort_after(40min); }

TEST_F(ImageTime, UnpackingThatIsSlowButInTimeSucceeds) {
  delay("mount", 29min);
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::done) << run.error;
}

TEST_F(ImageTime, UnpackingThatIsCancelledIsNotOutOfTime) {
  delay("mount", 10min);
  world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kProcess, "a", 5min));
  ASSERT_TRUE(world.flows().cancel(kUnpack, "a", "not wanted"));
  EXPECT_EQ(world.ended(kUnpack, "a").state, RunState::cancelled);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

// Pools.

TEST_F(ImageRefusal, AFullPoolIsSaidToBeFullWhateverElseIsWrongWithIt) {
  world.script.usage = PoolUsage{
      .bytes = 100, .used = 90, .full = true, .problems = {"the pool is out of data space: extend it"}};
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("pool_full"));
  EXPECT_LT(world.kit().simulation().elapsed(), 1s) << "it was tried again";
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

TEST_F(ImageRefusal, FullMetadataAreAFullPool) {
  world.script.usage = PoolUsage{.bytes = 100, .used = 1, .metadata_bytes = 100, .metadata_used = 96};
  EXPECT_THAT(world.process(key, "a").error, HasSubstr("pool_full"));
}

TEST_F(ImageRefusal, APoolThatIsBrokenAndNotFullIsTriedAgain) {
  world.script.usage = PoolUsage{.bytes = 100, .used = 1, .problems = {"the pool needs a check"}};
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("backend_unavailable: the pool needs a check"));
}

TEST_F(ImageRefusal, AVolumeThatFailsBecauseThePoolFilledMeanwhileAbortsAsFull) {
  world.script.before = [this](std::string_view call) {
    if (call != "mount") return;
    world.script.usage = PoolUsage{.bytes = 100, .used = 90, .full = true, .problems = {"out of data space"}};
    // What a device of a full pool does: the tree cannot be written.
    const auto volumes = world.services().options().backend.root + "/volumes";
    for (const auto& volume : fs::directory_iterator(volumes)) fs::remove_all(volume.path() / "tree");
  };
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::aborted) << run.error;
  EXPECT_THAT(run.error, HasSubstr("pool_full"));
}

TEST_F(ImageRefusal, AVolumeThatCannotBeLookedForIsTriedTwiceMore) {
  world.process(key, "a");
  int looked = 0;
  world.script.before = [&looked](std::string_view call) { looked += call == "find" ? 1 : 0; };
  world.script.finding = Error(Code::volume_failed, "the pool does not answer");
  const auto run = world.run(kUnpack, "a", UnpackRequest{.image_id = "a"});
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("the pool does not answer (after 2 retries)"));
  EXPECT_EQ(looked, 3);
}

TEST_F(ImageRefusal, OtherErrorsDoNotUseUpTheRetriesOfThePool) {
  world.process(key, "a");
  int looked = 0;
  world.script.before = [&looked](std::string_view call) { looked += call == "find" ? 1 : 0; };
  world.script.finding = Error(Code::volume_failed, "the pool does not answer");
  const auto wait = [this](Duration time) { ASSERT_FALSE(world.flows().wait(kUnpack, "a", time)); };
  // As long as the image is being removed, the tables refuse it before the pool is looked at.
  const auto begin_removal = [this] {
    const auto request = encode(RemoveRequest{.image_id = "a"}).value();
    ASSERT_TRUE(world.flows().start(kRemove, request, {.id = "a", .delay = 1h}));
  };
  const auto end_removal = [this] {
    ASSERT_TRUE(world.flows().cancel(kRemove, "a", "not wanted any more"));
    EXPECT_EQ(world.ended(kRemove, "a").state, RunState::cancelled);
  };
  world.start(kUnpack, "a", UnpackRequest{.image_id = "a"});
  // Attempts begin at 0, 100, 300, 700 and 1500 ms; the first, third and fifth get as far as the pool.
  wait(50ms);
  begin_removal();
  wait(100ms);
  end_removal();
  wait(250ms);
  begin_removal();
  wait(500ms);
  end_removal();
  const auto run = world.ended(kUnpack, "a");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("the pool does not answer (after 2 retries)"));
  EXPECT_EQ(looked, 3);
}

TEST_F(ImageRefusal, OtherErrorsAreTriedThreeTimesMore) {
  world.process(key, "a");
  const auto request = encode(RemoveRequest{.image_id = "a"}).value();
  ASSERT_TRUE(world.flows().start(kRemove, request, {.id = "a", .delay = 1h}));
  const auto before = world.kit().simulation().elapsed();
  const auto run = world.run(kUnpack, "a", UnpackRequest{.image_id = "a"});
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("(after 3 retries)"));
  EXPECT_EQ(world.kit().simulation().elapsed() - before, 700ms);
}

TEST_F(ImageRefusal, AnotherPoolThanTheConfiguredOneIsRefused) {
  world.process(key, "a");
  const auto unpack = world.run(kUnpack, "a", UnpackRequest{.image_id = "a", .pool_name = "other"});
  EXPECT_EQ(unpack.state, RunState::aborted);
  EXPECT_THAT(unpack.error, HasSubstr("no pool \"other\""));
  const auto activate = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .pool_name = "other"});
  EXPECT_EQ(activate.state, RunState::aborted);
  EXPECT_EQ(world.run(kUnpack, "a", UnpackRequest{.image_id = "a", .pool_name = "pawl"}).state,
            RunState::handed_off);
}

TEST_F(ImageRefusal, AVolumeOfASizeThatNoFileSystemHasIsRefused) {
  for (const std::int64_t bytes :
       {std::int64_t{1} << 20, (std::int64_t{64} << 20) + 1, std::int64_t{1} << 50}) {
    EXPECT_FALSE(check_volume_size(bytes)) << bytes;
  }
  EXPECT_TRUE(check_volume_size(std::int64_t{16} << 20));
  EXPECT_TRUE(check_volume_size(static_cast<std::int64_t>(kMostVolumeBytes)));
}

TEST_F(ImageRefusal, ThePoolIsAttachedAgainWheneverThatIsAskedFor) {
  EXPECT_TRUE(world.services().pool());
  EXPECT_TRUE(world.services().pool());
  EXPECT_EQ(world.script.attached, 1);
  EXPECT_TRUE(world.services().attach_pool());
  EXPECT_EQ(world.script.attached, 2);
}

// Archives.

TEST_F(ImageRefusal, AnArchiveThatWasNotDownloadedForTheImageIsNotUnpacked) {
  ASSERT_EQ(download().state, RunState::done);
  const auto run = world.run(kUnpack, "a", UnpackRequest{.image_id = "a", .local_path = world.path("a.tar")});
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("is not the archive of image"));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

TEST_F(ImageRefusal, AnArchiveThatWasChangedAfterItWasValidatedIsNotUsed) {
  world.script.before = [this](std::string_view call) {
    if (call != "create") return;
    const auto archive = world.services().archive_of("a");
    auto bytes = content_of(archive);
    // Inside the content of a file, where no rule of the format sees it.
    bytes[bytes.find("hello")] = 'j';
    write_file(archive, bytes);
  };
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("it was changed meanwhile"));
  EXPECT_THAT(world.log, HasSubstr("\"violation\":\"checksum\""));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  world.script.before = {};
  EXPECT_EQ(world.process(key, "a").state, RunState::done) << "and it is downloaded again";
  EXPECT_EQ(world.hostname(), "hello");
}

TEST_F(ImageRefusal, AnErrorOfUnpackingThatIsTriedAgainKeepsItsOwnText) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can set the attribute that is too large";
  TarBuilder large;
  large.directory("rootfs").pax({{"SCHILY.xattr.trusted.large", std::string(70'000, 'x')}});
  large.file("rootfs/a", "x").end();
  const auto run = world.process(world.put("large.tar", large), "large");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("setting the attribute trusted.large"));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

// Snapshots.

TEST_F(ImageRefusal, ASnapshotOfAnotherVolumeThanTheImagesIsRefused) {
  world.process(key, "a");
  const auto wrong = world.run(
      kActivate, "a", ActivateRequest{.image_id = "a", .device_id = 4711, .snapshot_name = "second"});
  EXPECT_EQ(wrong.state, RunState::aborted);
  EXPECT_THAT(wrong.error, HasSubstr("not in 4711"));
}

TEST_F(ImageRefusal, AnOutdatedSnapshotInUseKeepsItsRowAndFailsClearly) {
  world.process(key, "a");
  const auto old = snapshot();
  ASSERT_TRUE(world.backend().remove(find_unpacked(world.query(), "a").value()->volume.id));
  world.script.removing = [&](const Volume& volume) -> Result<void> {
    if (volume.id != old.volume.id) return {};
    return fail(Code::volume_busy, "it is mounted");
  };
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::failed);
  EXPECT_THAT(run.error, HasSubstr("it is mounted"));
  EXPECT_EQ(snapshot().volume.id, old.volume.id);
  EXPECT_EQ(world.hostname(), "hello");
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImageRefusal, AnOutdatedSnapshotMakesWayForTheNewOne) {
  world.process(key, "a");
  const auto old = snapshot();
  ASSERT_TRUE(world.backend().remove(find_unpacked(world.query(), "a").value()->volume.id));
  EXPECT_EQ(world.process(key, "a").state, RunState::done);
  EXPECT_NE(snapshot().volume.id, old.volume.id);
  EXPECT_FALSE(world.backend().find(old.volume).value());
}

TEST_F(ImageRefusal, AnInactiveSnapshotOutlivesTheVolumeItWasMadeOf) {
  world.process(key, "a");
  ASSERT_EQ(world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "kept"}).state,
            RunState::done);
  ASSERT_EQ(world.run(kDeactivate, "a", DeactivateRequest{.image_id = "a", .snapshot_name = "kept"}).state,
            RunState::done);
  ASSERT_TRUE(world.backend().remove(find_unpacked(world.query(), "a").value()->volume.id));
  EXPECT_EQ(world.process(key, "a").state, RunState::done);
  const auto kept = find_snapshot(world.query(), "kept").value();
  ASSERT_TRUE(kept) << "its row was dropped";
  EXPECT_TRUE(world.backend().find(kept->volume).value()->complete);
}

// Several runs.

TEST_F(ImageRefusal, TheSameObjectUnderTwoIdsAtOnceIsOneImage) {
  delay("fetch", 1min);
  world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kProcess, "a", 10s));
  const auto second = world.process(key, "b");
  EXPECT_EQ(second.state, RunState::failed);
  EXPECT_THAT(second.error, HasSubstr("volume_busy"));
  EXPECT_THAT(second.error, HasSubstr("of image \"a\" has not ended"));
  EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
  EXPECT_FALSE(find_image(world.query(), "b").value());
  EXPECT_EQ(world.hostname(), "hello");
}

TEST_F(ImageRefusal, AnObjectThatIsKnownIsFoundUnderTheIdThatItHas) {
  world.process(key, "a");
  const auto run = download("b");
  EXPECT_EQ(run.state, RunState::handed_off);
  const auto response = decode<DownloadResponse>(run.response).value();
  EXPECT_EQ(response.image_id, "a");
  EXPECT_TRUE(response.already_exist);
  const auto whole = world.process(key, "b");
  EXPECT_EQ(whole.state, RunState::done) << whole.error;
  EXPECT_EQ(decode<ProcessResponse>(whole.response)->image_id, "a");
  EXPECT_FALSE(find_image(world.query(), "b").value());
}

TEST_F(ImageRefusal, OnlyARunOfTheImagesOwnIdMakesSomethingOfIt) {
  ASSERT_EQ(download().state, RunState::done);
  const auto run = world.run(kUnpack, "b", UnpackRequest{.image_id = "a"});
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(run.error, HasSubstr("only a run with this id"));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

TEST_F(ImageRefusal, AnImageThatIsBeingRemovedIsNotProcessed) {
  world.process(key, "a");
  world.script.removing = [this, begun = false](const Volume&) mutable -> Result<void> {
    if (!std::exchange(begun, true)) world.pass(1min);
    return {};
  };
  world.start(kRemove, "a", RemoveRequest{.image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kRemove, "a", 1s));
  const auto process = world.process(key, "a");
  EXPECT_EQ(process.state, RunState::failed);
  EXPECT_THAT(process.error, HasSubstr("remove-image of image \"a\" has not ended"));
  const auto activate = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "new"});
  EXPECT_EQ(activate.state, RunState::failed);
  EXPECT_EQ(world.ended(kRemove, "a").state, RunState::done);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(world.garbage(), IsEmpty());
}

TEST_F(ImageRefusal, ADownloadThatBeginsWhileTheImageIsRemovedGivesWay) {
  world.process(key, "a");
  world.script.removing = [this, begun = false](const Volume&) mutable -> Result<void> {
    if (!std::exchange(begun, true))
      world.start(kDownload, "a", DownloadRequest{.s3_key = key, .image_id = "a"});
    return {};
  };
  const auto before = world.kit().simulation().elapsed();
  const auto removed = world.run(kRemove, "a", RemoveRequest{.image_id = "a"});
  EXPECT_EQ(removed.state, RunState::done) << removed.error;
  EXPECT_GE(world.kit().simulation().elapsed() - before, 1s)
      << "the archive was removed under the eyes of a download";
  EXPECT_THAT(world.ended(kDownload, "a").error, HasSubstr("remove-image of image \"a\" has not ended"));
  EXPECT_TRUE(fs::is_empty(world.services().archives()));
}

TEST_F(ImageRefusal, AnRmThatComesLaterDoesNotEndAProcessThatIsUnderWay) {
  delay("create", 2s);
  world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kProcess, "a", 1s));
  world.start(kRemove, "a", RemoveRequest{.image_id = "a"});
  const auto run = world.ended(kProcess, "a");
  EXPECT_EQ(run.state, RunState::done) << run.error;
}

TEST_F(ImageRefusal, CancellingTheWholeCancelsItsParts) {
  delay("fetch", 2min);
  world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kProcess, "a", 1min));
  ASSERT_TRUE(world.flows().cancel(kProcess, "a", "not wanted"));
  EXPECT_EQ(world.ended(kProcess, "a").state, RunState::cancelled);
  EXPECT_EQ(world.ended(kDownload, "a").state, RunState::cancelled);
  EXPECT_EQ(world.ended(kUnpack, "a").state, RunState::cancelled);
  EXPECT_EQ(world.ended(kActivate, "a").state, RunState::cancelled);
  EXPECT_TRUE(fs::is_empty(world.services().archives()));
}

TEST_F(ImageRefusal, APartThatFailsMakesTheWholeFailAndOneThatAbortsAbortsIt) {
  world.script.usage = PoolUsage{.bytes = 100, .used = 1, .problems = {"the pool needs a check"}};
  EXPECT_EQ(world.process(key, "a").state, RunState::failed);
  EXPECT_EQ(world.part(kUnpack).state, RunState::failed);
  EXPECT_EQ(world.process("tmp/no/such.tar", "b").state, RunState::aborted);
}

// After a restart of the machine.

TEST_F(ImageRefusal, EverySnapshotThatWasActiveIsActivatedAgain) {
  world.process(key, "a");
  for (const std::string name : {"second", "third"}) {
    ASSERT_EQ(world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = name}).state,
              RunState::done);
  }
  ASSERT_EQ(world.run(kDeactivate, "a", DeactivateRequest{.image_id = "a", .snapshot_name = "third"}).state,
            RunState::done);
  for (const std::string name : {"snap-a", "second", "third"}) {
    ASSERT_TRUE(world.backend().deactivate(snapshot(name).volume));
  }
  const auto run = world.run(kReactivate, "all", ReactivateRequest{});
  EXPECT_EQ(run.state, RunState::done) << run.error;
  EXPECT_TRUE(world.backend().find(snapshot("snap-a").volume).value()->active);
  EXPECT_TRUE(world.backend().find(snapshot("second").volume).value()->active);
  EXPECT_FALSE(world.backend().find(snapshot("third").volume).value()->active);
  EXPECT_EQ(world.hostname("second"), "hello");
}

}  // namespace
}  // namespace pawl::images::test
