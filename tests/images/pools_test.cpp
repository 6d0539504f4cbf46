// SPDX-License-Identifier: Apache-2.0
// Several pools, of which a request names one.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "images/routes.hpp"
#include "images/views.hpp"
#include "tests/images/scripted_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ImagePools : public ::testing::Test {
 protected:
  ScriptedWorld world{{.pools = {{"fast", BackendKind::dir, "fast"}}}};
  std::string key = world.put("a.tar", plain_image());
  std::string other = world.put("b.tar", plain_image("other"));

  Backend& fast() { return **world.services().pool("fast"); }
  pawl::Run process(const std::string& object, const std::string& id, const std::string& pool) {
    return world.run(kProcess, id, ProcessRequest{.s3_key = object, .image_id = id, .pool_name = pool});
  }
  SnapshotRow snapshot(const std::string& name) { return find_snapshot(world.query(), name).value().value(); }
  Result<http::Response> ask(std::string_view id, http::Request request = {}) {
    const auto routes =
        image_routes({.services = world.services(), .flows = world.flows(), .engine = world.kit().engine()});
    return std::ranges::find(routes, id, &http::Route::id)->run(request);
  }
  /// A further pool that cannot be attached, because a file is where its directory should be.
  void break_fast() { write_file(world.path("fast"), "no directory"); }
};

TEST_F(ImagePools, ARequestThatNamesOneEndsInIt) {
  EXPECT_EQ(process(key, "a", "fast").state, RunState::done);
  EXPECT_EQ(fast().list().value().size(), 2U);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(snapshot("snap-a").device_path, HasSubstr(world.path("fast")));
  EXPECT_EQ(world.hostname(), "hello");
}

TEST_F(ImagePools, WithoutANameTheDefaultOneIsUsed) {
  EXPECT_EQ(process(key, "a", "").state, RunState::done);
  EXPECT_EQ(process(other, "b", "pawl").state, RunState::done);
  EXPECT_EQ(world.backend().list().value().size(), 4U);
  EXPECT_THAT(fast().list().value(), IsEmpty());
}

TEST_F(ImagePools, WithoutANameAnImageStaysInItsPool) {
  process(key, "a", "fast");
  EXPECT_EQ(process(key, "a", "").state, RunState::done);
  EXPECT_EQ(world.part(kUnpack).state, RunState::handed_off);
  const auto second = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .snapshot_name = "second"});
  EXPECT_EQ(second.state, RunState::done) << second.error;
  EXPECT_EQ(fast().list().value().size(), 3U);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
}

TEST_F(ImagePools, AnImageIsInOneOfThem) {
  process(key, "a", "fast");
  const auto refused = process(key, "a", "pawl");
  EXPECT_EQ(refused.state, RunState::aborted);
  EXPECT_THAT(refused.error, HasSubstr("image \"a\" is in the pool \"fast\"; `pawl images rm a` removes it"));
  const auto activate = world.run(kActivate, "a", ActivateRequest{.image_id = "a", .pool_name = "pawl"});
  EXPECT_EQ(activate.state, RunState::aborted);
  EXPECT_THAT(activate.error, HasSubstr("is in the pool \"fast\""));
  ASSERT_EQ(world.run(kRemove, "a", RemoveRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_EQ(process(key, "a", "pawl").state, RunState::done);
  EXPECT_EQ(world.backend().list().value().size(), 2U);
}

TEST_F(ImagePools, DeactivatingAndRemovingGoToThePoolOfTheImage) {
  process(key, "a", "fast");
  ASSERT_EQ(world.run(kDeactivate, "a", DeactivateRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_FALSE(fast().find(snapshot("snap-a").volume).value()->active);
  ASSERT_EQ(world.run(kRemove, "a", RemoveRequest{.image_id = "a"}).state, RunState::done);
  EXPECT_THAT(fast().list().value(), IsEmpty());
}

TEST_F(ImagePools, WhatACancelledRunHasMadeIsRemovedFromItsPool) {
  // Without a root file system the image is refused once it is unpacked.
  const auto bad = world.put("bad.tar", TarBuilder().directory("etc").end());
  EXPECT_EQ(process(bad, "a", "fast").state, RunState::aborted);
  EXPECT_THAT(fast().list().value(), IsEmpty());
}

TEST_F(ImagePools, VolumesOfOneAreNoGarbageOfAnother) {
  process(key, "a", "fast");
  process(other, "b", "");
  EXPECT_THAT(world.garbage(), IsEmpty());
  // Under the number of a volume that another pool has.
  const auto number = snapshot("snap-b").volume.id;
  ASSERT_TRUE(fast().create(
      {.id = number, .name = "orphan", .bytes = std::uint64_t{64} << 20, .marker = make_marker()}));
  EXPECT_THAT(world.garbage(),
              ElementsAre(Garbage{GarbageKind::unknown_volume, number, "", "orphan", "fast"}));
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  EXPECT_EQ(fast().list().value().size(), 2U);
  EXPECT_EQ(world.backend().list().value().size(), 2U);
  EXPECT_EQ(world.hostname("snap-a"), "hello");
  EXPECT_EQ(world.hostname("snap-b"), "other");
}

TEST_F(ImagePools, WhatOneHasLostIsForgotten) {
  process(key, "a", "fast");
  ASSERT_TRUE(fast().remove(snapshot("snap-a").volume.id));
  EXPECT_THAT(world.kinds(), ElementsAre(GarbageKind::lost_snapshot));
  EXPECT_EQ(world.collect().state, RunState::done);
  EXPECT_FALSE(find_snapshot(world.query(), "snap-a").value());
}

TEST_F(ImagePools, AfterARestartSnapshotsOfEachAreActivatedAgain) {
  process(key, "a", "fast");
  process(other, "b", "");
  ASSERT_TRUE(fast().deactivate(snapshot("snap-a").volume));
  ASSERT_TRUE(world.backend().deactivate(snapshot("snap-b").volume));
  world.kit().crash();
  for (const auto& pool : world.services().pools()) {
    EXPECT_EQ(world.run(kReactivate, reactivation_id(pool), ReactivateRequest{.pool_name = pool}).state,
              RunState::done);
  }
  EXPECT_TRUE(fast().find(snapshot("snap-a").volume).value()->active);
  EXPECT_TRUE(world.backend().find(snapshot("snap-b").volume).value()->active);
}

TEST_F(ImagePools, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto refused = world.run(kUnpack, "a", UnpackRequest{.image_id = "a", .pool_name = "other"});
  EXPECT_EQ(refused.state, RunState::aborted);
  EXPECT_THAT(refused.error, HasSubstr("there is no pool \"other\"; known: pawl, fast"));
}

TEST_F(ImagePools, OneThatCannotBeAttachedHurtsOnlyThoseWhoNameIt) {
  break_fast();
  EXPECT_EQ(process(other, "b", "fast").state, RunState::failed);
  EXPECT_EQ(process(key, "a", "").state, RunState::done);
  EXPECT_THAT(world.garbage(), IsEmpty());
  const auto collected = world.collect();
  EXPECT_EQ(collected.state, RunState::done);
  EXPECT_THAT(collected.response, HasSubstr("left the pool fast"));
  EXPECT_TRUE(ask("images_pool"));
  EXPECT_EQ(code_of(ask("images_pool", {.parameters = {{"pool_name", "fast"}}})), Code::backend_unavailable);
}

TEST_F(ImagePools, WhatLiesInOneThatIsNotConfiguredAnyMoreIsLeftAlone) {
  process(key, "a", "");
  world.by_hand("UPDATE unpacked_images SET pool = 'gone'");
  world.by_hand("UPDATE snapshots SET pool = 'gone'");
  world.by_hand("UPDATE images_volumes SET pool = 'gone'");
  const auto volumes = world.backend().list().value();
  for (const auto& volume : volumes) ASSERT_TRUE(world.backend().remove(volume.id));
  EXPECT_THAT(world.garbage(), IsEmpty());
  const auto removed = world.run(kRemove, "a", RemoveRequest{.image_id = "a"});
  EXPECT_EQ(removed.state, RunState::failed);
  EXPECT_THAT(removed.error,
              HasSubstr("the pool \"gone\" is not configured any more; add it to images.pools"));
}

TEST_F(ImagePools, EachIsShownWithItsVolumes) {
  process(key, "a", "fast");
  ASSERT_TRUE(world.services().pool());
  const auto shown = decode<PoolView>(ask("images_pool")->body).value();
  EXPECT_EQ(shown.pool_name, "pawl");
  EXPECT_EQ(shown.volumes, 0U);
  ASSERT_EQ(shown.pools.size(), 2U);
  EXPECT_EQ(shown.pools[0].pool_name, "pawl");
  EXPECT_EQ(shown.pools[1].pool_name, "fast");
  EXPECT_EQ(shown.pools[1].volumes, 2U);
  EXPECT_TRUE(shown.pools[1].attached);
  const auto named = decode<PoolView>(ask("images_pool", {.parameters = {{"pool_name", "fast"}}})->body);
  EXPECT_EQ(named->volumes, 2U);
  const auto image = ask("images_get", {.parameters = {{"image", "a"}}});
  EXPECT_THAT(image->body, HasSubstr("\"pool_name\":\"fast\""));
}

TEST_F(ImagePools, TheDoctorLooksAtEach) {
  break_fast();
  EXPECT_FALSE(ask("images_setup_pool", {.body = R"({"pool_name":"fast"})"}));
  const auto diagnosis = decode<Diagnosis>(ask("images_doctor")->body).value();
  EXPECT_FALSE(diagnosis.healthy);
  EXPECT_EQ(diagnosis.checks.back().name, "pool fast");
  EXPECT_THAT(diagnosis.checks.back().help, HasSubstr("setup-pool --pool-name fast"));
}

TEST_F(ImagePools, OneIsDetachedAndTheOtherStays) {
  process(key, "a", "fast");
  process(other, "b", "");
  ASSERT_TRUE(ask("images_detach_pool", {.parameters = {{"pool_name", "fast"}}}));
  EXPECT_TRUE(world.services().attached_pool());
  EXPECT_EQ(code_of(world.services().attached_pool("fast")), Code::backend_unavailable);
  ASSERT_TRUE(ask("images_setup_pool", {.body = R"({"pool_name":"fast"})"}));
  EXPECT_EQ(world.ended(kReactivate, "pool-fast").state, RunState::done);
  EXPECT_TRUE(fast().find(snapshot("snap-a").volume).value()->active);
}

TEST_F(ImagePools, OneThatCannotBeAttachedDoesNotKeepAnotherFromBeingDetached) {
  break_fast();
  world.start(kReactivate, "pool-fast", ReactivateRequest{.pool_name = "fast"});
  ASSERT_FALSE(world.flows().wait(kReactivate, "pool-fast", std::chrono::milliseconds(150)));
  EXPECT_EQ(code_of(ask("images_detach_pool", {.parameters = {{"pool_name", "fast"}}})), Code::volume_busy);
  EXPECT_TRUE(ask("images_detach_pool"));
  EXPECT_EQ(world.ended(kReactivate, "pool-fast").state, RunState::failed);
}

TEST_F(ImagePools, ARequestOverHttpNamesOne) {
  const auto ask_for = [this](const std::string& pool) {
    return ask("images_process",
               {.body = R"({"image_id":"a","s3_key":")" + key + R"(","pool_name":")" + pool + "\"}"});
  };
  EXPECT_EQ(code_of(ask_for("other")), Code::invalid_argument);
  ASSERT_TRUE(ask_for("fast"));
  EXPECT_EQ(code_of(ask_for("pawl")), Code::volume_busy) << "it is under way for another pool";
  EXPECT_TRUE(ask_for("fast")) << "the same run";
  EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
  EXPECT_EQ(fast().list().value().size(), 2U);
  EXPECT_EQ(code_of(ask_for("pawl")), Code::volume_exists);
  EXPECT_EQ(
      code_of(ask("images_activate", {.body = R"({"pool_name":"pawl"})", .parameters = {{"image", "a"}}})),
      Code::volume_exists);
}

}  // namespace
}  // namespace pawl::images::test
