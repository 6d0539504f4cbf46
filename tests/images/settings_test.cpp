// SPDX-License-Identifier: Apache-2.0
#include "images/settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace pawl::images {
namespace {

using ::testing::HasSubstr;

class ImageSettings : public ::testing::Test {
 protected:
  Result<void> set(std::string_view name, std::string_view value) {
    for (const auto& setting : image_settings(options_, choice_)) {
      if (setting.name == name) return setting.set(value);
    }
    ADD_FAILURE() << "there is no setting " << name;
    return {};
  }

  ImagesOptions options_;
  ImagesChoice choice_;
};

TEST_F(ImageSettings, TheDocumentationListsEveryKeyWithItsDefault) {
  std::vector<std::string> expected;
  for (const auto& setting : image_settings(options_, choice_)) {
    expected.push_back(fmt::format("| `images.{}` | {} | `{}` | {} |", setting.name, setting.type,
                                   setting.default_value, setting.description));
  }
  std::vector<std::string> found;
  std::ifstream page(PAWL_SOURCE_DIR "/docs/images.md");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `images.")) found.push_back(line);
  }
  EXPECT_EQ(found, expected);
}

TEST_F(ImageSettings, TheDefaultsThatAreShownAreThoseInUse) {
  const auto before = options_;
  for (const auto& setting : image_settings(options_, choice_)) {
    if (setting.default_value == "\"\"") continue;
    const auto taken = setting.set(setting.default_value);
    EXPECT_TRUE(taken) << setting.name << ": " << taken.error().to_string();
  }
  EXPECT_EQ(options_.s3.region, before.s3.region);
  EXPECT_EQ(options_.s3.path_style, before.s3.path_style);
  EXPECT_EQ(choice_.backend, BackendKind::dir);
  EXPECT_EQ(options_.backend.pool, before.backend.pool);
  EXPECT_EQ(options_.backend.pool_bytes, before.backend.pool_bytes);
  EXPECT_EQ(options_.volume_bytes, before.volume_bytes);
  EXPECT_EQ(options_.image_bytes, before.image_bytes);
  EXPECT_EQ(options_.limits.entries, before.limits.entries);
  EXPECT_EQ(options_.limits.file_bytes, before.limits.file_bytes);
  EXPECT_EQ(options_.limits.total_bytes, before.limits.total_bytes);
  choose_policy(options_, choice_);
  EXPECT_EQ(options_.layout.either, before.layout.either);
  EXPECT_EQ(options_.download_retry, before.download_retry);
  EXPECT_EQ(options_.s3.connect_timeout, before.s3.connect_timeout);
  EXPECT_EQ(options_.s3.stall_timeout, before.s3.stall_timeout);
  EXPECT_EQ(options_.limits.archive_bytes, before.limits.archive_bytes);
  EXPECT_EQ(options_.policy.set_id, before.policy.set_id);
  EXPECT_EQ(options_.policy.absolute_links, before.policy.absolute_links);
  EXPECT_EQ(options_.policy.devices, before.policy.devices);
  EXPECT_EQ(options_.policy.case_collisions, before.policy.case_collisions);
  EXPECT_EQ(options_.layout.strict, before.layout.strict);
  EXPECT_EQ(options_.layout.direct, before.layout.direct);
  EXPECT_EQ(options_.downloads, before.downloads);
  EXPECT_EQ(options_.unpacking, before.unpacking);
  EXPECT_EQ(options_.download_timeout, before.download_timeout);
  EXPECT_EQ(options_.unpack_timeout, before.unpack_timeout);
}

TEST_F(ImageSettings, SizesHaveUnitsAndBounds) {
  ASSERT_TRUE(set("volume_size", "64MiB"));
  EXPECT_EQ(options_.volume_bytes, std::uint64_t{64} << 20);
  for (const auto* wrong : {"", "0", "-1", "64 MiB", "64MB", "101GiB", "18446744073709551616", "1e9"}) {
    const auto refused = set("volume_size", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message(), HasSubstr("10GiB"));
  }
  EXPECT_EQ(options_.volume_bytes, std::uint64_t{64} << 20);
}

TEST_F(ImageSettings, AChoiceIsOneOfThoseThatThereAre) {
  ASSERT_TRUE(set("set_id", "strip"));
  choose_policy(options_, choice_);
  EXPECT_EQ(options_.policy.set_id, SetIdPolicy::strip);
  const auto refused = set("backend", "zfs");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("dir, reflink, btrfs, dmthin"));
}

TEST_F(ImageSettings, APolicySetsAllRulesAndEachIsChangedByItsOwnSettingInAnyOrder) {
  ASSERT_TRUE(set("devices", "reject"));
  ASSERT_TRUE(set("policy", "distribution"));
  ASSERT_TRUE(set("set_id", "strip"));
  choose_policy(options_, choice_);
  EXPECT_EQ(options_.policy.devices, DevicePolicy::reject);
  EXPECT_EQ(options_.policy.set_id, SetIdPolicy::strip);
  EXPECT_EQ(options_.policy.absolute_links, AbsoluteLinkPolicy::in_root);
  EXPECT_EQ(options_.policy.case_collisions, CasePolicy::allow);
  EXPECT_TRUE(options_.layout.either);
}

TEST_F(ImageSettings, FilesAreTakenFromAnAbsoluteDirectoryOnly) {
  EXPECT_FALSE(set("files", "images"));
  ASSERT_TRUE(set("files", "/srv/images"));
  EXPECT_EQ(options_.file_directories, std::vector<std::string>{"/srv/images"});
}

TEST_F(ImageSettings, FurtherPoolsAreNamesWithTheirBackEndsAndPlaces) {
  ASSERT_TRUE(set("pools", "fast=dir:/srv/fast, big=btrfs:/srv/big"));
  EXPECT_EQ(options_.pools, (std::vector<FurtherPool>{{"fast", BackendKind::dir, "/srv/fast"},
                                                      {"big", BackendKind::btrfs, "/srv/big"}}));
  ASSERT_TRUE(set("pools", ""));
  EXPECT_TRUE(options_.pools.empty());
  for (const auto* wrong : {"fast", "fast=/srv/fast", "fast=zfs:/srv/fast", "fast=dir:srv", "=dir:/srv/fast",
                            "fast=dir:/srv/fast,", " "}) {
    const auto refused = set("pools", wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message(), HasSubstr("fast=dir:/srv/fast")) << wrong;
  }
}

TEST_F(ImageSettings, PoolsThatGetInEachOthersWayAreRefused) {
  options_.directory = "/srv/images";
  const auto why = [this](std::string_view pools) {
    EXPECT_TRUE(set("pools", pools));
    const auto checked = check_pools(options_);
    if (checked) return std::string();
    EXPECT_EQ(checked.error().code(), Code::config_invalid);
    return std::string(checked.error().message());
  };
  EXPECT_EQ(why("fast=dir:/srv/fast, faster=dir:/srv/faster"), "");
  EXPECT_THAT(why("pawl=dir:/srv/fast"), HasSubstr("two pools have the name \"pawl\""));
  EXPECT_THAT(why("a=dir:/srv/a, a=dir:/srv/b"), HasSubstr("two pools have the name \"a\""));
  EXPECT_THAT(why("a=dmthin:/srv/a"), HasSubstr("choose dir, reflink or btrfs"));
  EXPECT_THAT(why("a=dir:/srv/a, b=dir:/srv/a/"), HasSubstr("a directory of its own"));
  EXPECT_THAT(why("a=dir:/srv/a, b=dir:/srv/a/b"), HasSubstr("a directory of its own"));
  EXPECT_THAT(why("a=dir:/srv/a/b, b=dir:/srv/a"), HasSubstr("a directory of its own"));
  EXPECT_THAT(why("a=dir:/srv/images"), HasSubstr("a directory of its own"));
  EXPECT_THAT(why("a=dir:/srv/images/archives/a"), HasSubstr("a directory of its own"));
}

TEST_F(ImageSettings, AKeyWithoutItsSecretIsRefused) {
  ::unsetenv("AWS_ACCESS_KEY_ID");  // NOLINT(concurrency-mt-unsafe): there is one thread
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  S3Options s3{.key_id = "me"};
  const auto refused = read_credentials(s3, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::config_invalid);
  S3Options unsigned_requests;
  EXPECT_TRUE(read_credentials(unsigned_requests, {}));
}

TEST_F(ImageSettings, ASecretFileIsReadWithoutItsLineEnd) {
  const auto path = ::testing::TempDir() + "pawl-images-secret";
  std::ofstream(path) << "hush\r\n";
  S3Options s3{.key_id = "me"};
  ASSERT_TRUE(read_credentials(s3, {.secret_file = path}));
  EXPECT_EQ(s3.secret, "hush");
  std::ofstream(path) << "\n";
  EXPECT_FALSE(read_credentials(s3, {.secret_file = path}));
  EXPECT_FALSE(read_credentials(s3, {.secret_file = path + "-none"}));
}

}  // namespace
}  // namespace pawl::images
