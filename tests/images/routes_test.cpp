// SPDX-License-Identifier: Apache-2.0
// What the API of images does with requests that the state of things makes difficult.
#include "images/routes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "images/views.hpp"
#include "server/problem.hpp"
#include "tests/images/scripted_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ImageRoutes : testing::Test {
  ScriptedWorld world;
  std::string key = world.put("a.tar", plain_image());

  Result<http::Response> ask(std::string_view id, http::Request request = {}) {
    const auto routes =
        image_routes({.services = world.services(), .flows = world.flows(), .engine = world.kit().engine()});
    return std::ranges::find(routes, id, &http::Route::id)->run(request);
  }
  Result<http::Response> process(const std::string& fields) {
    return ask("images_process", {.body = "{\"s3_key\":\"" + key + "\"" + fields + "}"});
  }
};

TEST_F(ImageRoutes, LookingAtThePoolDoesNotLookIntoEachVolume) {
  world.process(key, "a");
  world.script.listed = 0;
  const auto pool = ask("images_pool");
  ASSERT_TRUE(pool) << pool.error().to_string();
  EXPECT_THAT(pool->body, HasSubstr("\"volumes\":2"));
  EXPECT_EQ(world.script.listed, 0);
}

TEST_F(ImageRoutes, ReadingDoesNotAttachThePool) {
  world.by_hand(
      "INSERT INTO images VALUES('a', 'bucket', 'key', '', '', '', 0, 'completed', 'inactive', '', '', '', "
      "'')");
  EXPECT_EQ(code_of(ask("images_pool")), Code::backend_unavailable);
  EXPECT_EQ(code_of(ask("images_garbage")), Code::backend_unavailable);
  const auto image = ask("images_get", {.parameters = {{"image", "a"}}});
  EXPECT_TRUE(image) << image.error().to_string();
  const auto answer = ask("images_doctor");
  ASSERT_TRUE(answer) << answer.error().to_string();
  const auto diagnosis = decode<Diagnosis>(answer->body).value();
  EXPECT_TRUE(diagnosis.healthy);
  EXPECT_EQ(diagnosis.checks.back().name, "pool");
  EXPECT_EQ(diagnosis.checks.back().found, "not attached yet");
  EXPECT_EQ(world.script.attached, 0);
}

TEST_F(ImageRoutes, WhyThePoolCouldNotBeAttachedIsSaidToReaders) {
  world.script.attaching = Error(Code::backend_unavailable, "there are no loop devices");
  EXPECT_FALSE(ask("images_setup_pool"));
  const auto pool = ask("images_pool");
  ASSERT_FALSE(pool);
  EXPECT_THAT(pool.error().message(), HasSubstr("no loop devices"));
  const auto answer = ask("images_doctor");
  ASSERT_TRUE(answer);
  const auto diagnosis = decode<Diagnosis>(answer->body).value();
  EXPECT_FALSE(diagnosis.healthy);
  EXPECT_THAT(diagnosis.checks.back().found, HasSubstr("no loop devices"));
  EXPECT_EQ(world.script.attached, 1);
}

TEST_F(ImageRoutes, SettingUpAPoolThatTheServerHasAlreadyAttachesItAgain) {
  ASSERT_TRUE(ask("images_setup_pool"));
  const auto before = world.script.attached;
  ASSERT_TRUE(ask("images_setup_pool"));
  EXPECT_EQ(world.script.attached, before + 1);
}

TEST_F(ImageRoutes, APoolThatWasDetachedStaysSoUntilItIsSetUpAgain) {
  world.process(key, "a");
  ASSERT_TRUE(ask("images_detach_pool"));
  EXPECT_EQ(code_of(ask("images_pool")), Code::backend_unavailable);
  EXPECT_EQ(code_of(ask("images_pool")), Code::backend_unavailable) << "looking has attached it";
  ASSERT_TRUE(ask("images_setup_pool"));
  EXPECT_TRUE(ask("images_pool"));
  EXPECT_EQ(world.ended(kReactivate, "all").state, RunState::done) << "what was active is made so again";
}

TEST_F(ImageRoutes, APoolThatARunWorksOnIsNotDetached) {
  world.script.before = [this, done = false](std::string_view name) mutable {
    if (name == "create" && !std::exchange(done, true)) world.pass(std::chrono::minutes(1));
  };
  world.start(kProcess, "a", ProcessRequest{.s3_key = key, .image_id = "a"});
  ASSERT_FALSE(world.flows().wait(kProcess, "a", std::chrono::seconds(10)));
  EXPECT_EQ(code_of(ask("images_detach_pool")), Code::volume_busy);
  EXPECT_EQ(world.ended(kProcess, "a").state, RunState::done);
}

TEST_F(ImageRoutes, APoolThatAQueuedDownloadNeedsIsNotDetached) {
  // Five other runs take all places of the queue, so that nothing of the image is in the tables yet.
  world.script.before = [this](std::string_view name) {
    if (name == "by-hand") world.pass(std::chrono::minutes(1));
  };
  for (int other = 0; other < 5; ++other) world.occupy(kDownloads, std::to_string(other));
  const auto download = encode(DownloadRequest{.s3_key = key, .image_id = "a"}).value();
  ASSERT_TRUE(world.flows().start(kDownload, download, {.id = "a", .queue = std::string(kDownloads)}));
  ASSERT_FALSE(world.flows().wait(kDownload, "a", std::chrono::seconds(10)));
  ASSERT_EQ(world.part(kDownload).status, "queued");
  EXPECT_EQ(code_of(ask("images_detach_pool")), Code::volume_busy);
  EXPECT_EQ(world.ended(kDownload, "a").state, RunState::done);
  EXPECT_TRUE(ask("images_detach_pool"));
}

TEST_F(ImageRoutes, APoolIsNotDetachedWhileGarbageIsCollected) {
  world.process(key, "a");
  ASSERT_TRUE(world.backend().create(
      {.id = 99, .name = "unknown", .bytes = std::uint64_t{64} << 20, .marker = make_marker()}));
  world.script.removing = [this](const Volume&) -> Result<void> {
    world.pass(std::chrono::minutes(1));
    return {};
  };
  world.start(kCollect, "all", CollectRequest{});
  ASSERT_FALSE(world.flows().wait(kCollect, "all", std::chrono::seconds(10)));
  EXPECT_EQ(code_of(ask("images_detach_pool")), Code::volume_busy);
  EXPECT_EQ(world.ended(kCollect, "all").state, RunState::done);
  EXPECT_TRUE(ask("images_pool")) << "the pool stays attached where it cannot be detached";
}

TEST_F(ImageRoutes, APoolIsNotDetachedWhileSnapshotsAreReactivated) {
  world.process(key, "a");
  ASSERT_TRUE(ask("images_detach_pool"));
  world.script.before = [this](std::string_view name) {
    if (name == "find") world.pass(std::chrono::minutes(1));
  };
  ASSERT_TRUE(ask("images_setup_pool"));
  ASSERT_FALSE(world.flows().wait(kReactivate, "all", std::chrono::seconds(10)));
  EXPECT_EQ(code_of(ask("images_detach_pool")), Code::volume_busy);
  EXPECT_EQ(world.ended(kReactivate, "all").state, RunState::done);
}

TEST_F(ImageRoutes, ARunThatBeginsWhileThePoolIsBeingDetachedDoesNotGetIt) {
  world.process(key, "a");
  bool got_it = true;
  world.script.before = [&](std::string_view name) {
    if (name == "detach") got_it = world.services().pool().has_value();
  };
  ASSERT_TRUE(ask("images_detach_pool"));
  EXPECT_FALSE(got_it);
}

TEST_F(ImageRoutes, NumbersOfVolumesAreText) {
  world.process(key, "a");
  const auto image = ask("images_get", {.parameters = {{"image", "a"}}});
  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_THAT(image->body, HasSubstr("\"device_id\":\"1\""));
  EXPECT_THAT(image->body, HasSubstr("\"snapshot_id\":\"2\""));
  // Runs of earlier versions have numbers.
  EXPECT_EQ(decode<UnpackResponse>(R"({"image_id":"a","device_id":17})")->device_id, 17U);
  EXPECT_EQ(decode<UnpackResponse>(R"({"image_id":"a","device_id":"17"})")->device_id, 17U);
  for (const auto* wrong : {"\"x\"", "\"-1\"", "\"1 \"", "true", "4294967296", "\"4294967296\""}) {
    EXPECT_FALSE(decode<UnpackResponse>(std::string("{\"device_id\":") + wrong + "}")) << wrong;
  }
}

TEST_F(ImageRoutes, OnlyTheConfiguredPoolIsTaken) {
  EXPECT_EQ(code_of(process(R"(,"pool_name":"other")")), Code::invalid_argument);
  EXPECT_TRUE(process(R"(,"pool_name":"pawl")"));
}

TEST_F(ImageRoutes, AnActivationNamesItsPoolToo) {
  world.process(key, "a");
  const auto activate = [this](const char* body) {
    return ask("images_activate", {.body = body, .parameters = {{"image", "a"}}});
  };
  EXPECT_EQ(code_of(activate(R"({"pool_name":"other"})")), Code::invalid_argument);
  const auto named = activate(R"({"pool_name":"pawl"})");
  EXPECT_TRUE(named) << named.error().to_string();
}

TEST_F(ImageRoutes, TheDoctorCallsNoBackEndGoodThatCannotBeUsed) {
  const auto answer = ask("images_doctor");
  ASSERT_TRUE(answer) << answer.error().to_string();
  const auto diagnosis = decode<Diagnosis>(answer->body).value();
  EXPECT_TRUE(diagnosis.healthy);
  for (const auto& check : diagnosis.checks) {
    if (check.name.starts_with("back end")) {
      EXPECT_EQ(check.good, check.found == "can be used here") << check.name;
    }
  }
}

TEST_F(ImageRoutes, EveryStatusOfAnAnswerHasItsPhrase) {
  const auto routes =
      image_routes({.services = world.services(), .flows = world.flows(), .engine = world.kit().engine()});
  for (const auto& route : routes) {
    if (route.success == 202) {
      EXPECT_EQ(server::reason(route.success), "Accepted") << route.id;
    }
  }
}

TEST_F(ImageRoutes, AnImageWhoseRowIsLostCanBeRemoved) {
  world.process(key, "a");
  world.by_hand("DELETE FROM images");
  ASSERT_TRUE(ask("images_remove", {.parameters = {{"image", "a"}}}));
  EXPECT_EQ(world.ended(kRemove, "a").state, RunState::done);
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_EQ(code_of(ask("images_remove", {.parameters = {{"image", "a"}}})), Code::unknown_instance);
}

TEST_F(ImageRoutes, AKnownObjectIsTakenUnderItsOwnIdAndNoOther) {
  world.process(key, "a");
  const auto without = process("");
  ASSERT_TRUE(without) << without.error().to_string();
  EXPECT_THAT(without->body, HasSubstr("\"image_id\":\"a\""));
  EXPECT_TRUE(process(R"(,"image_id":"a")"));
  EXPECT_EQ(code_of(process(R"(,"image_id":"b")")), Code::volume_exists);
}

TEST_F(ImageRoutes, AVolumeOfASizeThatNoneCanHaveIsRefused) {
  EXPECT_EQ(code_of(process(R"(,"device_size":67108865)")), Code::invalid_argument);
  EXPECT_EQ(code_of(process(R"(,"device_size":4096)")), Code::invalid_argument);
  EXPECT_TRUE(process(R"(,"device_size":67108864)"));
}

}  // namespace
}  // namespace pawl::images::test
