// SPDX-License-Identifier: Apache-2.0
// Pools that are full, too small, foreign or half made.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "images/backend/backend.hpp"
#include "images/backend/mounts.hpp"
#include "images/backend/os.hpp"
#include "images/backend/thin_pool.hpp"
#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

/// Writes until the file system or the disk under it refuses; flushed, so that the refusal is not hidden.
void fill(const std::string& path, std::uint64_t bytes) {
  const auto file = open_file(path, O_WRONLY | O_CREAT);
  ASSERT_TRUE(file);
  const std::string block(kMiB, 'x');
  for (std::uint64_t done = 0; done < bytes; done += block.size()) {
    if (::write(file->get(), block.data(), block.size()) != static_cast<ssize_t>(block.size())) return;
  }
}

class Pools : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(GetParam()); !why.empty()) {
      GTEST_SKIP() << kind_name(GetParam()) << " cannot run here: " << why;
    }
  }
};

TEST_P(Pools, APoolIsExtendedWhileItIsInUse) {
  const Place place(GetParam(), 384 * kMiB, true);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  const auto volume = test_volume(1);
  ASSERT_TRUE(backend->create(volume));
  const auto path = backend->mount(volume);
  ASSERT_TRUE(path) << path.error().to_string();
  write_text(*path + "/file", "hello");
  const auto before = backend->pool()->bytes;
  const auto extended = backend->extend(640 * kMiB);
  ASSERT_TRUE(extended) << extended.error().to_string();
  EXPECT_GE(backend->pool()->bytes, before + 200 * kMiB);
  write_text(*path + "/second", "after");
  ASSERT_TRUE(backend->unmount(volume));
  ASSERT_TRUE(backend->extend(640 * kMiB));
  const auto again = backend->mount(volume);
  ASSERT_TRUE(again);
  EXPECT_EQ(read_text(*again + "/file"), "hello");
  EXPECT_EQ(read_text(*again + "/second"), "after");
}

INSTANTIATE_TEST_SUITE_P(Each, Pools,
                         ::testing::Values(BackendKind::reflink, BackendKind::btrfs, BackendKind::dmthin),
                         [](const auto& info) { return kind_name(info.param); });

/// Volumes that promise more than the pool has.
class ThinPools : public Pools {};

TEST_P(ThinPools, AVolumeThatFilledThePoolIsReportedIncompleteAndCanBeMadeAnew) {
  const Place place(GetParam(), 320 * kMiB, true);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  const auto kept = test_volume(1);
  ASSERT_TRUE(backend->create(kept));
  const auto large = test_volume(2, 2048 * kMiB);
  ASSERT_TRUE(backend->create(large));
  const auto path = backend->mount(large);
  ASSERT_TRUE(path) << path.error().to_string();
  fill(*path + "/file", 1024 * kMiB);
  const auto unmounted = backend->unmount(large);
  ASSERT_FALSE(unmounted) << "the pool was not full";
  EXPECT_EQ(unmounted.error().code(), Code::pool_full) << unmounted.error().to_string();
  const auto repeated = place.open()->unmount(large);
  ASSERT_FALSE(repeated) << "a repeat called it good";
  EXPECT_EQ(repeated.error().code(), Code::pool_full);
  EXPECT_FALSE((*backend->find(large))->complete);
  const auto refused = backend->create(test_volume(3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::pool_full) << refused.error().to_string();
  const auto no_copy = backend->snapshot(kept, test_volume(4));
  ASSERT_FALSE(no_copy);
  EXPECT_EQ(no_copy.error().code(), Code::pool_full) << no_copy.error().to_string();
  EXPECT_FALSE(backend->activate(large));
  const auto anew = backend->create(large);
  ASSERT_TRUE(anew) << anew.error().to_string();
  EXPECT_TRUE((*backend->find(large))->complete);
  ASSERT_TRUE(backend->create(test_volume(3)));
}

INSTANTIATE_TEST_SUITE_P(Each, ThinPools, ::testing::Values(BackendKind::reflink, BackendKind::dmthin),
                         [](const auto& info) { return kind_name(info.param); });

TEST(BtrfsPool, AVolumeHoldsNoMoreThanItsSize) {
  if (const auto why = obstacle(BackendKind::btrfs); !why.empty()) GTEST_SKIP() << why;
  const Place place(BackendKind::btrfs);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  const auto volume = test_volume(1, 16 * kMiB);
  ASSERT_TRUE(backend->create(volume));
  const auto path = backend->mount(volume);
  ASSERT_TRUE(path);
  fill(*path + "/file", 64 * kMiB);
  EXPECT_LT(std::filesystem::file_size(*path + "/file"), 17 * kMiB);
}

TEST(OpeningABackend, WhatMakesNoSenseIsRefused) {
  const auto refused = [](BackendOptions options) {
    const auto opened = open_backend(std::move(options));
    return !opened && opened.error().code() == Code::invalid_argument;
  };
  EXPECT_TRUE(refused({.root = ""}));
  EXPECT_TRUE(refused({.root = "x", .pool = "a b"}));
  EXPECT_TRUE(refused({.root = "x", .pool_bytes = 4096}));
  EXPECT_TRUE(refused({.root = "x", .data_device = "/dev/null"}));
}

TEST(OpeningABackend, EveryKindIsListedAndWhatIsNotAvailableSaysWhy) {
  const auto choices = available_backends();
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices.back().kind, BackendKind::dir);
  EXPECT_TRUE(choices.back().available);
  for (const auto& choice : choices) EXPECT_EQ(choice.available, choice.reason.empty());
}

TEST(ThinStatusLine, AHealthyPoolIsRead) {
  const auto status = parse_thin_status("0 12/1024 560/8192 - rw discard_passdown error_if_no_space - 1024 ");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->metadata_used, 12U);
  EXPECT_EQ(status->metadata_blocks, 1024U);
  EXPECT_EQ(status->data_used, 560U);
  EXPECT_EQ(status->data_blocks, 8192U);
  EXPECT_EQ(status->mode, "rw");
  EXPECT_FALSE(status->needs_check);
  EXPECT_FALSE(status->failed);
}

TEST(ThinStatusLine, APoolThatNeedsACheckHasFailedOrIsFullIsRecognised) {
  const auto check = parse_thin_status("0 1/2 3/4 - ro discard_passdown error_if_no_space needs_check 1024 ");
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->needs_check);
  EXPECT_EQ(check->mode, "ro");
  EXPECT_TRUE(parse_thin_status("Fail")->failed);
  EXPECT_EQ(parse_thin_status("1 1/2 4/4 7 out_of_data_space discard_passdown error_if_no_space - 8")->mode,
            "out_of_data_space");
  EXPECT_FALSE(parse_thin_status("nonsense"));
}

TEST(ThinStatusLine, MetadataIsAFiveHundredthButNotLessThanFourMebibytes) {
  EXPECT_EQ(thin_metadata_bytes(kMiB), 4 * kMiB);
  EXPECT_EQ(thin_metadata_bytes(std::uint64_t{4096} * 500 * 4096), std::uint64_t{4096} * 4096);
}

class DmthinPool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(BackendKind::dmthin); !why.empty()) GTEST_SKIP() << why;
  }

  static void expect_unavailable(const Place& place, std::string_view text) {
    const auto attached = place.open()->attach();
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().code(), Code::backend_unavailable);
    EXPECT_NE(attached.error().message().find(text), std::string::npos) << attached.error().message();
  }
};

TEST_F(DmthinPool, APoolWhoseMetadataHasGoneIsNotMadeAgainOverItsData) {
  const Place place(BackendKind::dmthin, 320 * kMiB, true);
  {
    const auto backend = place.open();
    ASSERT_TRUE(backend->attach());
    ASSERT_TRUE(backend->create(test_volume(1)));
    ASSERT_TRUE(backend->detach());
  }
  const auto metadata = place.root() + "/metadata.img";
  const auto size = std::filesystem::file_size(metadata);
  std::filesystem::rename(metadata, metadata + ".kept");
  expect_unavailable(place, "gone");
  std::ofstream(metadata).close();
  std::filesystem::resize_file(metadata, size);
  expect_unavailable(place, "made before");
  ASSERT_TRUE(place.open()->detach());
  std::filesystem::remove(metadata);
  std::filesystem::rename(metadata + ".kept", metadata);
  const auto backend = place.open();
  const auto attached = backend->attach();
  ASSERT_TRUE(attached) << attached.error().to_string();
  EXPECT_TRUE((*backend->find(test_volume(1)))->complete);
}

TEST_F(DmthinPool, ADeviceThatHoldsSomethingIsNotTaken) {
  const Place place(BackendKind::dmthin, 320 * kMiB, true);
  write_text(place.root() + "/data.img", std::string(2048, 'x'));
  std::filesystem::resize_file(place.root() + "/data.img", 320 * kMiB);
  expect_unavailable(place, "holds something");
}

TEST_F(DmthinPool, MetadataThatDoesNotPassItsCheckIsNotUsed) {
  const Place place(BackendKind::dmthin, 320 * kMiB, true);
  {
    const auto backend = place.open();
    ASSERT_TRUE(backend->attach());
    ASSERT_TRUE(backend->create(test_volume(1)));
    ASSERT_TRUE(backend->detach());
  }
  {
    std::fstream metadata(place.root() + "/metadata.img", std::ios::binary | std::ios::in | std::ios::out);
    metadata.seekp(8);
    metadata << std::string(2000, 'x');
  }
  expect_unavailable(place, "thin_check");
}

TEST_F(DmthinPool, AForeignVolumeWithoutALabelIsLeftAlone) {
  const Place place(BackendKind::dmthin);
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  const auto volume = test_volume(1);
  ASSERT_TRUE(backend->create(volume));
  const auto path = backend->activate(volume);
  ASSERT_TRUE(path);
  {
    std::ofstream device(*path, std::ios::binary | std::ios::in);
    device << "XFSB" << std::string(508, 'x');
  }
  ASSERT_TRUE(backend->deactivate(volume));
  const auto created = backend->create(stranger(1));
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code(), Code::volume_exists);
}

}  // namespace
}  // namespace pawl::images::pools
