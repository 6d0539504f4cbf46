// SPDX-License-Identifier: Apache-2.0
// Pools of the device mapper of other programs, full ones, and what a cut off removal leaves of a volume.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "images/backend/backend.hpp"
#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

class DmthinCare : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(GetParam()); !why.empty()) {
      GTEST_SKIP() << kind_name(GetParam()) << " cannot run here: " << why;
    }
  }
};

TEST_P(DmthinCare, APoolOfAnotherProgramIsNotTaken) {
  const Place place(GetParam(), 320 * kMiB, true);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  ASSERT_TRUE(backend->create(test_volume(1)));
  ASSERT_TRUE(backend->detach());
  // Without it nothing says whose pool this is.
  std::filesystem::rename(place.root() + "/pool.json", place.root() + "/kept.json");
  const auto attached = place.open()->attach();
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code(), Code::backend_unavailable);
  EXPECT_NE(attached.error().message().find("does not say that it is this pool"), std::string::npos)
      << attached.error().message();
  ASSERT_TRUE(place.open()->detach());
  std::filesystem::rename(place.root() + "/kept.json", place.root() + "/pool.json");
  const auto again = place.open();
  ASSERT_TRUE(again->attach());
  EXPECT_TRUE((*again->find(test_volume(1)))->complete);
}

TEST_P(DmthinCare, TheNoteThatACutOffRemovalHasLeftIsFoundAndRemoved) {
  const Place place(GetParam());
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  const auto volume = test_volume(1);
  const auto note = fmt::format("{}/writing/{}", place.root(), volume.id);
  std::ofstream(note) << fmt::format("{{\"marker\":\"{}\"}}", volume.marker);
  const auto found = backend->find(volume);
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_TRUE(*found);
  EXPECT_FALSE((*found)->complete);
  ASSERT_TRUE(backend->remove(volume.id));
  EXPECT_FALSE(std::filesystem::exists(note));
  EXPECT_FALSE(*backend->find(volume));
}

TEST_P(DmthinCare, APoolWithoutRoomSaysThatItIsFull) {
  const Place place(GetParam(), 320 * kMiB, true);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  EXPECT_FALSE(backend->pool()->full);
  const auto large = test_volume(1, 2048 * kMiB);
  ASSERT_TRUE(backend->create(large));
  const auto path = backend->mount(large);
  ASSERT_TRUE(path) << path.error().to_string();
  {
    std::ofstream file(*path + "/file", std::ios::binary);
    const std::string block(kMiB, 'x');
    for (int i = 0; i < 400 && file.write(block.data(), static_cast<std::streamsize>(block.size())); ++i) {}
  }
  EXPECT_FALSE(backend->unmount(large));
  EXPECT_TRUE(backend->pool()->full);
  ASSERT_TRUE(backend->remove(large.id));
  EXPECT_FALSE(backend->pool()->full);
}

INSTANTIATE_TEST_SUITE_P(Each, DmthinCare, ::testing::Values(BackendKind::dmthin),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace
}  // namespace pawl::images::pools
