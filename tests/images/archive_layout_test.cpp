// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ImageLayout : public testing::Test {
 protected:
  void make(const std::string& path, unsigned int mode = 0755) const {
    fs::create_directories(place.root() / path);
    fs::permissions(place.root() / path, fs::perms{mode});
  }

  Result<std::vector<std::string>> verify(const Layout& layout = {}) const {
    const Descriptor root(::open(place.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return verify_layout(root.get(), layout);
  }

  void refused(std::string_view path, const Layout& layout = {}) const {
    const auto verified = verify(layout);
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().code(), Code::layout_invalid) << verified.error().to_string();
    EXPECT_EQ(verified.error().field("path"), path) << verified.error().to_string();
  }

  void make_usual() const {
    for (const auto* path : {"rootfs/etc", "rootfs/usr/bin", "rootfs/var"}) make(path);
  }

  ArchivePlace place{ArchivePlace::Kind::memory};
};

TEST_F(ImageLayout, ARootFileSystemBelowRootfsIsFine) {
  make_usual();
  make("rootfs/tmp", 01777);
  make("rootfs/var/tmp", 01777);
  const auto verified = verify({.strict = true});
  ASSERT_TRUE(verified) << verified.error().to_string();
  EXPECT_THAT(*verified, IsEmpty());
}

TEST_F(ImageLayout, RootfsMustBeThere) {
  make("etc");
  refused("rootfs");
}

TEST_F(ImageLayout, RootfsMustBeADirectoryAndNoLink) {
  make("real/etc");
  fs::create_directory_symlink("real", place.root() / "rootfs");
  refused("rootfs");
}

TEST_F(ImageLayout, WhatIsExpectedButMissingIsNoted) {
  make("rootfs/etc");
  const auto verified = verify();
  ASSERT_TRUE(verified) << verified.error().to_string();
  EXPECT_THAT(*verified,
              ElementsAre(HasSubstr("rootfs/usr\" is missing"), HasSubstr("rootfs/var\" is missing")));
}

TEST_F(ImageLayout, WhatIsExpectedButMissingIsRefusedWhenStrict) {
  make("rootfs/etc");
  refused("rootfs/usr", {.strict = true});
}

TEST_F(ImageLayout, ALinkToADirectoryCountsAsThatDirectory) {
  make_usual();
  make("rootfs/system/etc");
  fs::remove(place.root() / "rootfs/etc");
  fs::create_directory_symlink("/system/etc", place.root() / "rootfs/etc");
  const auto verified = verify({.strict = true});
  ASSERT_TRUE(verified) << verified.error().to_string();
  EXPECT_THAT(*verified, IsEmpty());
}

TEST_F(ImageLayout, ADirectoryBehindALinkMustNotBeWritableForEverybody) {
  for (const auto* link : {"open", "/open", "../../open", "other/../open"}) {
    make_usual();
    make("rootfs/other");
    make("rootfs/open", 0777);
    fs::remove(place.root() / "rootfs/etc");
    fs::create_directory_symlink(link, place.root() / "rootfs/etc");
    refused("rootfs/etc");
    place.clear();
  }
}

TEST_F(ImageLayout, ADirectoryBelowALinkMustNotBeWritableForEverybody) {
  make_usual();
  make("rootfs/real/deep/open", 0777);
  fs::remove_all(place.root() / "rootfs/usr");
  fs::create_directory_symlink("real", place.root() / "rootfs/usr");
  refused("rootfs/usr/deep/open");
}

TEST_F(ImageLayout, ALinkThatLeadsOutsideOrNowhereCountsAsMissing) {
  make_usual();
  fs::remove(place.root() / "rootfs/var");
  fs::create_directory_symlink(place.canary(), place.root() / "rootfs/var");
  refused("rootfs/var", {.strict = true});
  const auto verified = verify();
  ASSERT_TRUE(verified) << verified.error().to_string();
  EXPECT_THAT(*verified, ElementsAre(HasSubstr("rootfs/var\" is missing")));
}

TEST_F(ImageLayout, EtcMustNotBeWritableForEverybody) {
  make_usual();
  make("rootfs/etc", 0777);
  refused("rootfs/etc");
}

TEST_F(ImageLayout, ADirectoryDeepBelowUsrMustNotBeWritableForEverybody) {
  make_usual();
  make("rootfs/usr/share/a/b", 01777);
  refused("rootfs/usr/share/a/b");
}

TEST_F(ImageLayout, DirectoriesOfASimilarNameMayBeWritable) {
  make_usual();
  make("rootfs/etcetera", 0777);
  make("rootfs/srv/etc", 0777);
  make("usr", 0777);
  EXPECT_TRUE(verify());
}

TEST_F(ImageLayout, LinksBelowUsrAreNotFollowed) {
  make_usual();
  make("rootfs/tmp", 01777);
  fs::create_directory_symlink("../tmp", place.root() / "rootfs/usr/tmp");
  fs::permissions(place.canary(), fs::perms{0777});
  fs::create_directory_symlink(place.canary(), place.root() / "rootfs/etc/out");
  EXPECT_TRUE(verify());
}

TEST_F(ImageLayout, TheArchiveItselfMayBeTheRootFileSystem) {
  for (const auto* path : {"etc", "usr", "var"}) make(path);
  const auto verified = verify({.strict = true, .direct = true});
  ASSERT_TRUE(verified) << verified.error().to_string();
  make("etc/open", 0777);
  refused("etc/open", {.direct = true});
}

TEST_F(ImageLayout, EitherTakesTheArchiveItselfWhereThereIsNoRootfs) {
  make("var");
  refused("rootfs", {.either = true});
  make("etc");
  make("usr");
  EXPECT_TRUE(verify({.strict = true, .either = true}));
  make("etc/open", 0777);
  refused("etc/open", {.either = true});
  make_usual();
  EXPECT_TRUE(verify({.strict = true, .either = true})) << "where there is one, it is what counts";
}

TEST_F(ImageLayout, ANestTooDeepIsRefused) {
  make_usual();
  std::string path = "rootfs/etc";
  for (int depth = 3; depth <= 256; ++depth) path += "/d";
  make(path);
  EXPECT_TRUE(verify());
  make(path + "/d");
  const auto verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code(), Code::layout_invalid);
}

}  // namespace
}  // namespace pawl::images
