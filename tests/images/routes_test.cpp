// SPDX-License-Identifier: Apache-2.0
// What the API of images does with requests that the state of things makes difficult.
#include "images/routes.hpp"

#include <algorithm>

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
        image_routes({.shop = world.shop(), .flows = world.flows(), .engine = world.kit().engine()});
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

TEST_F(ImageRoutes, SettingUpAPoolThatTheServerHasAlreadyTakesItUpAgain) {
  ASSERT_TRUE(ask("images_pool"));
  const auto before = world.script.attached;
  ASSERT_TRUE(ask("images_setup_pool"));
  EXPECT_EQ(world.script.attached, before + 1);
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
