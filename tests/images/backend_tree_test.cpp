// SPDX-License-Identifier: Apache-2.0
#include "images/backend/tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

class BackendTree : public ::testing::Test {
 protected:
  BackendTree() : place_(BackendKind::dir) {
    std::filesystem::create_directories(from_);
    std::filesystem::create_directories(to_);
  }

  void copy() {
    const auto copied = copy_tree(from_, to_);
    ASSERT_TRUE(copied) << copied.error().to_string();
  }

  struct stat status(const std::string& path) {
    struct stat found{};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
    return found;
  }

  Place place_;
  const std::string from_ = place_.root() + "/from";
  const std::string to_ = place_.root() + "/to";
};

TEST_F(BackendTree, FilesAndDirectoriesKeepContentsModesAndTimes) {
  std::filesystem::create_directories(from_ + "/a/b");
  write_text(from_ + "/a/b/file", "hello");
  ASSERT_EQ(::chmod((from_ + "/a/b/file").c_str(), 04711), 0);
  ASSERT_EQ(::chmod((from_ + "/a/b").c_str(), 01755), 0);
  const std::array<timespec, 2> times{timespec{1000, 1}, timespec{2000, 2}};
  for (const auto* name : {"/a/b/file", "/a/b", "/a", "/"}) {
    ASSERT_EQ(::utimensat(AT_FDCWD, (from_ + name).c_str(), times.data(), 0), 0);
  }
  copy();
  EXPECT_EQ(read_text(to_ + "/a/b/file"), "hello");
  EXPECT_EQ(status(to_ + "/a/b/file").st_mode & 07777U, 04711U);
  EXPECT_EQ(status(to_ + "/a/b").st_mode & 07777U, 01755U);
  for (const auto* name : {"/a/b/file", "/a/b", "/a", ""}) {
    EXPECT_EQ(status(to_ + name).st_mtim.tv_sec, 2000) << name;
    EXPECT_EQ(status(to_ + name).st_mtim.tv_nsec, 2) << name;
  }
}

TEST_F(BackendTree, TwoNamesOfOneFileStayOneFile) {
  std::filesystem::create_directories(from_ + "/deep");
  write_text(from_ + "/one", "hello");
  std::filesystem::create_hard_link(from_ + "/one", from_ + "/deep/two");
  copy();
  EXPECT_EQ(status(to_ + "/one").st_ino, status(to_ + "/deep/two").st_ino);
  EXPECT_EQ(status(to_ + "/one").st_nlink, 2U);
  EXPECT_NE(status(to_ + "/one").st_ino, status(from_ + "/one").st_ino);
  const auto bytes = tree_bytes(to_);
  ASSERT_TRUE(bytes);
  EXPECT_LT(*bytes, 3U * 4096);
}

TEST_F(BackendTree, LinksAreCopiedAndNotFollowed) {
  write_text(place_.root() + "/outside", "secret");
  std::filesystem::create_symlink("../outside", from_ + "/link");
  std::filesystem::create_directory_symlink("..", from_ + "/up");
  copy();
  EXPECT_EQ(std::filesystem::read_symlink(to_ + "/link"), "../outside");
  EXPECT_EQ(std::filesystem::read_symlink(to_ + "/up"), "..");
}

TEST_F(BackendTree, HolesStayHoles) {
  const auto path = from_ + "/sparse";
  write_text(path, "begin");
  std::filesystem::resize_file(path, 64 * kMiB);
  {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(file, "middle", 6, 32 * kMiB), 6);
    ::close(file);
  }
  copy();
  const auto text = read_text(to_ + "/sparse");
  ASSERT_EQ(text.size(), 64 * kMiB);
  EXPECT_EQ(text.substr(0, 5), "begin");
  EXPECT_EQ(text.substr(32 * kMiB, 6), "middle");
  EXPECT_LT(status(to_ + "/sparse").st_blocks * 512, static_cast<blkcnt_t>(kMiB));
}

TEST_F(BackendTree, ExtendedAttributesAreCopied) {
  write_text(from_ + "/file", "hello");
  ASSERT_EQ(::setxattr((from_ + "/file").c_str(), "user.note", "value", 5, 0), 0);
  ASSERT_EQ(::setxattr(from_.c_str(), "user.top", "t", 1, 0), 0);
  copy();
  std::string value(16, '\0');
  ASSERT_EQ(::getxattr((to_ + "/file").c_str(), "user.note", value.data(), value.size()), 5);
  EXPECT_EQ(value.substr(0, 5), "value");
  EXPECT_EQ(::getxattr(to_.c_str(), "user.top", value.data(), value.size()), 1);
}

TEST_F(BackendTree, PipesAreCopiedWithoutBeingOpened) {
  ASSERT_EQ(::mkfifo((from_ + "/pipe").c_str(), 0640), 0);
  copy();
  EXPECT_TRUE(S_ISFIFO(status(to_ + "/pipe").st_mode));
  EXPECT_EQ(status(to_ + "/pipe").st_mode & 07777U, 0640U);
}

TEST_F(BackendTree, OwnersAndDevicesAreCopiedByTheSuperuser) {
  if (::geteuid() != 0) GTEST_SKIP() << "this needs the superuser";
  write_text(from_ + "/file", "hello");
  ASSERT_EQ(::chmod((from_ + "/file").c_str(), 06755), 0);
  ASSERT_EQ(::chown((from_ + "/file").c_str(), 1234, 5678), 0);
  ASSERT_EQ(::chmod((from_ + "/file").c_str(), 06755), 0);
  std::filesystem::create_symlink("file", from_ + "/link");
  ASSERT_EQ(::lchown((from_ + "/link").c_str(), 1234, 5678), 0);
  ASSERT_EQ(::mknod((from_ + "/null").c_str(), S_IFCHR | 0666U, makedev(1, 3)), 0);
  copy();
  EXPECT_EQ(status(to_ + "/file").st_uid, 1234U);
  EXPECT_EQ(status(to_ + "/file").st_gid, 5678U);
  EXPECT_EQ(status(to_ + "/file").st_mode & 07777U, 06755U);
  EXPECT_EQ(status(to_ + "/link").st_uid, 1234U);
  EXPECT_EQ(status(to_ + "/null").st_rdev, makedev(1, 3));
}

TEST_F(BackendTree, WhatIsMountedInsideIsNeitherCopiedNorRemoved) {
  std::filesystem::create_directories(from_ + "/inside");
  if (::mount("none", (from_ + "/inside").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "this needs the right to mount";
  }
  write_text(from_ + "/inside/file", "hello");
  const auto copied = copy_tree(from_, to_);
  const auto removed = remove_tree(from_);
  EXPECT_EQ(read_text(from_ + "/inside/file"), "hello");
  ASSERT_EQ(::umount2((from_ + "/inside").c_str(), 0), 0);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code(), Code::volume_busy);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code(), Code::volume_busy);
}

TEST_F(BackendTree, ATreeIsRemovedWithEverythingInItAndNothingBehindItsLinks) {
  std::filesystem::create_directories(from_ + "/a/b/c");
  write_text(from_ + "/a/b/c/file", "hello");
  std::filesystem::create_directory_symlink(to_, from_ + "/a/link");
  write_text(to_ + "/kept", "kept");
  ASSERT_EQ(::chmod((from_ + "/a/b/c").c_str(), 0), 0);
  ASSERT_TRUE(remove_tree(from_));
  EXPECT_FALSE(std::filesystem::exists(from_));
  EXPECT_EQ(read_text(to_ + "/kept"), "kept");
  EXPECT_TRUE(remove_tree(from_));
}

}  // namespace
}  // namespace pawl::images::pools
