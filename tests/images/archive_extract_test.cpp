// SPDX-License-Identifier: Apache-2.0
// The unpacked tree is the one that GNU tar makes of the same archive.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ArchiveExtraction : public testing::Test {
 protected:
  std::string content(const std::string& path) const {
    std::ifstream in(place.root() / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ArchivePlace place{ArchivePlace::Kind::disk};
};

void write_file(const fs::path& path, std::string_view content, mode_t mode = 0644) {
  std::ofstream(path, std::ios::binary) << content;
  ::chmod(path.c_str(), mode);
}

void set_mtime(const fs::path& path, std::int64_t seconds, std::int64_t nanoseconds) {
  const std::array<timespec, 2> times{timespec{.tv_sec = seconds, .tv_nsec = nanoseconds},
                                      timespec{.tv_sec = seconds, .tv_nsec = nanoseconds}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW), 0) << path;
}

/// A tree with one of everything that ordinary archives have.
void make_tree(const fs::path& root) {
  fs::create_directories(root / "rootfs/etc");
  fs::create_directories(root / "rootfs/usr/lib");
  write_file(root / "rootfs/etc/passwd", "root:x:0:0\n", 0640);
  write_file(root / "rootfs/etc/empty", "", 0400);
  write_file(root / "rootfs/usr/lib/large", std::string(3'000'000, 'L') + "end", 0755);
  write_file(root / "rootfs/sticky", "x", 01666);
  const auto deep = root / "rootfs/usr" / std::string(120, 'd') / std::string(130, 'e');
  fs::create_directories(deep);
  write_file(deep / std::string(90, 'f'), "long name");
  fs::create_symlink("../lib/large", root / "rootfs/usr/link");
  fs::create_symlink("lib/" + std::string(150, 't'), root / "rootfs/usr/long-link");
  fs::create_symlink("nowhere", root / "rootfs/dangling");
  fs::create_hard_link(root / "rootfs/etc/passwd", root / "rootfs/usr/passwd");
  fs::create_hard_link(root / "rootfs/etc/passwd", root / "rootfs/zz");
  ::mkfifo((root / "rootfs/fifo").c_str(), 0620);
  write_file(root / "rootfs/\xc3\xa4\xe2\x82\xac", "not ASCII");
  {
    std::ofstream holes(root / "rootfs/holes", std::ios::binary);
    holes.seekp(1 << 20) << "in the middle";
    holes.seekp(5 << 20) << std::string(5000, 'y');
  }
  fs::resize_file(root / "rootfs/holes", 9 << 20);
  ::setxattr((root / "rootfs/etc/passwd").c_str(), "user.note", "a\0b", 3, 0);
  ::setxattr((root / "rootfs/etc").c_str(), "user.of-directory", "1", 1, 0);
  if (::geteuid() == 0) {
    ::setxattr((root / "rootfs/etc/empty").c_str(), "trusted.mark", "t", 1, 0);
    EXPECT_EQ(::chown((root / "rootfs/etc/passwd").c_str(), 1234, 4321), 0);
    EXPECT_EQ(::lchown((root / "rootfs/usr/link").c_str(), 77, 78), 0);
    EXPECT_EQ(::chown((root / "rootfs/usr/lib").c_str(), 3'000'000, 3'000'001), 0);
  }
  ::chmod((root / "rootfs/usr/lib").c_str(), 02750);
  ::chmod((root / "rootfs/etc").c_str(), 0555);
  int second = 1'000'000;
  for (const auto* path :
       {"rootfs/etc/passwd", "rootfs/usr/link", "rootfs/fifo", "rootfs/holes", "rootfs/usr/lib/large",
        "rootfs/usr/lib", "rootfs/usr", "rootfs/etc", "rootfs", "."}) {
    set_mtime(root / path, second, 123'456'789);
    second += 1000;
  }
}

struct Dialect {
  const char* name;
  std::vector<std::string> options;
};

class ArchiveDialects : public ArchiveExtraction, public testing::WithParamInterface<Dialect> {};

TEST_P(ArchiveDialects, UnpackToTheSameTreeAsWithTar) {
  const auto original = place.top() / "original";
  const auto expected = place.top() / "expected";
  make_tree(original);
  if (std::string_view(GetParam().name) == "ustar") {
    // Neither its names nor its numbers can be this long.
    fs::remove_all(original / "rootfs/usr" / std::string(120, 'd'));
    fs::remove(original / "rootfs/usr/long-link");
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown((original / "rootfs/usr/lib").c_str(), 5, 6), 0);
    }
  }
  std::vector<std::string> command{"tar", "-C", original.string(), "--numeric-owner", "-cf", place.archive()};
  command.insert(command.end(), GetParam().options.begin(), GetParam().options.end());
  command.emplace_back(".");
  ASSERT_EQ(run_command(command), 0);
  fs::create_directory(expected);
  ASSERT_EQ(run_command({"tar", "-C", expected.string(), "--numeric-owner", "--same-owner", "-p", "--xattrs",
                         "--xattrs-include=*", "-xf", place.archive()}),
            0);

  const auto scanned = scan(place.archive(), {});
  ASSERT_TRUE(scanned) << scanned.error().to_string();
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  if (::geteuid() == 0) {
    EXPECT_THAT(unpacked->notes, IsEmpty());
  }
  EXPECT_EQ(describe_tree(place.root()), describe_tree(expected));
  EXPECT_EQ(unpacked->bytes, scanned->bytes);
  EXPECT_EQ(unpacked->entries, describe_tree(place.root()).size());
}

INSTANTIATE_TEST_SUITE_P(
    All, ArchiveDialects,
    testing::Values(Dialect{"ustar", {"--format=ustar"}}, Dialect{"gnu", {"--format=gnu"}},
                    Dialect{"gnu_sparse", {"--format=gnu", "--sparse"}},
                    Dialect{"pax", {"--format=pax", "--xattrs", "--xattrs-include=*"}},
                    Dialect{"pax_sparse", {"--format=pax", "--sparse", "--xattrs", "--xattrs-include=*"}},
                    Dialect{"pax_sparse_00", {"--format=pax", "--sparse", "--sparse-version=0.0"}},
                    Dialect{"pax_sparse_01", {"--format=pax", "--sparse", "--sparse-version=0.1"}}),
    [](const auto& info) { return info.param.name; });

TEST_F(ArchiveExtraction, HolesStayHoles) {
  const auto original = place.top() / "original";
  fs::create_directory(original);
  write_file(original / "holes", "begin");
  fs::resize_file(original / "holes", 64 << 20);
  ASSERT_EQ(run_command({"tar", "-C", original.string(), "--sparse", "-cf", place.archive(), "."}), 0);
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_EQ(unpacked->bytes, 64U << 20);
  struct stat status{};
  ASSERT_EQ(::stat((place.root() / "holes").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 64 << 20);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
}

TEST_F(ArchiveExtraction, ModesAreExactWhateverTheMaskSays) {
  place.write(TarBuilder().file("f", "x", 0666).directory("d", 0777).file("made/f", "x").end());
  EXPECT_EQ(in_child([&] {
              ::umask(0077);
              return place.unpack() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(fs::status(place.root() / "f").permissions(), fs::perms{0666});
  EXPECT_EQ(fs::status(place.root() / "d").permissions(), fs::perms{0777});
  EXPECT_EQ(fs::status(place.root() / "made").permissions(), fs::perms{0755});
}

TEST_F(ArchiveExtraction, TheRootTakesTheModeOfItsEntry) {
  place.write(TarBuilder().directory("./", 0711).file("./f", "x").end());
  ASSERT_TRUE(place.unpack());
  EXPECT_EQ(fs::status(place.root()).permissions(), fs::perms{0711});
  EXPECT_EQ(content("f"), "x");
}

TEST_F(ArchiveExtraction, ManyDirectoriesInTurnAreMoreThanItKeepsOpen) {
  TarBuilder archive;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) archive.file("d" + std::to_string(i) + "/e/" + std::to_string(round), "x");
  }
  archive.hardlink("d7/e/linked", "d99/e/2");
  place.write(archive.end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_EQ(content("d0/e/2"), "x");
  EXPECT_EQ(fs::hard_link_count(place.root() / "d99/e/2"), 2U);
}

TEST_F(ArchiveExtraction, DevicesBelowDevAreMadeByPolicy) {
  place.write(TarBuilder()
                  .header({.name = "rootfs/dev/null", .type = '3', .mode = 0666, .major = 1, .minor = 3})
                  .header({.name = "dev/vda", .type = '4', .mode = 0660, .gid = 6, .major = 254})
                  .end());
  const auto unpacked = place.unpack({.policy = {.devices = DevicePolicy::below_dev}});
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  struct stat status{};
  if (::lstat((place.root() / "rootfs/dev/null").c_str(), &status) != 0) {
    EXPECT_THAT(unpacked->notes, Contains(HasSubstr("device nodes")));
    return;
  }
  EXPECT_EQ(status.st_mode, S_IFCHR | 0666U);
  EXPECT_EQ(status.st_rdev, makedev(1, 3));
  ASSERT_EQ(::lstat((place.root() / "dev/vda").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFBLK | 0660U);
  EXPECT_EQ(status.st_rdev, makedev(254, 0));
}

TEST_F(ArchiveExtraction, CapabilitiesOfFilesAreLeftOutUnlessSetuidIsAllowed) {
  // cap_net_raw+ep, as the kernel stores it.
  const std::string capability("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  place.write(
      TarBuilder().pax({{"SCHILY.xattr.security.capability", capability}}).file("ping", "x", 0755).end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_THAT(unpacked->notes, Contains(HasSubstr("capabilities")));
  EXPECT_LT(::getxattr((place.root() / "ping").c_str(), "security.capability", nullptr, 0), 0);
  if (::geteuid() != 0) return;

  fs::remove(place.root() / "ping");
  ASSERT_TRUE(place.unpack({.policy = {.set_id = SetIdPolicy::allow}}));
  EXPECT_EQ(::getxattr((place.root() / "ping").c_str(), "security.capability", nullptr, 0), 20);
}

TEST_F(ArchiveExtraction, AccessControlListsAreKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  place.write(
      TarBuilder()
          .pax({{"SCHILY.acl.access", "user::rwx,group::r-x,other::r-x"},
                {"SCHILY.acl.default", "user::rwx,user:7:r-x,group::r-x,mask::r-x,other::---"}})
          .directory("d")
          .pax({{"SCHILY.acl.access", "user::rw-\nuser:1234:r--\ngroup::r--\nmask::r--\nother::---\n"}})
          .file("d/f", "x", 0640)
          .file("d/plain", "x", 0644)
          .end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  const auto list_of = [this](const char* path, const char* key) {
    std::array<char, 256> value{};
    const auto size = ::getxattr((place.root() / path).c_str(), key, value.data(), value.size());
    return std::string(value.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  if (std::ranges::find_if(unpacked->notes, [](const std::string& note) {
        return note.contains("not supported");
      }) != unpacked->notes.end()) {
    GTEST_SKIP() << "the file system has no access control lists";
  }
  EXPECT_THAT(unpacked->notes, IsEmpty());
  // The version, then tag, permissions and id of each: the owner, user 1234, the group, the mask, others.
  EXPECT_EQ(list_of("d/f", "system.posix_acl_access"), std::string("\2\0\0\0"
                                                                   "\1\0\6\0\xff\xff\xff\xff"
                                                                   "\2\0\4\0\xd2\4\0\0"
                                                                   "\4\0\4\0\xff\xff\xff\xff"
                                                                   "\x10\0\4\0\xff\xff\xff\xff"
                                                                   "\x20\0\0\0\xff\xff\xff\xff",
                                                                   44));
  EXPECT_EQ(list_of("d", "system.posix_acl_default").size(), 44U);
  EXPECT_EQ(fs::status(place.root() / "d/f").permissions(), fs::perms{0640});
  // It was made before the directory had its list.
  EXPECT_EQ(list_of("d/plain", "system.posix_acl_access"), "");
}

TEST_F(ArchiveExtraction, AccessControlListsThatAreStoredAsExtendedAttributesAreKept) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string list(
      "\2\0\0\0"
      "\1\0\6\0\xff\xff\xff\xff"
      "\2\0\4\0\xd2\4\0\0"
      "\4\0\4\0\xff\xff\xff\xff"
      "\x10\0\4\0\xff\xff\xff\xff"
      "\x20\0\0\0\xff\xff\xff\xff",
      44);
  const std::string text = "user::rw-\nuser:1234:r--\ngroup::r--\nmask::r--\nother::---\n";
  place.write(TarBuilder()
                  .pax({{"SCHILY.xattr.system.posix_acl_access", list}})
                  .file("alone", "x", 0640)
                  .pax({{"SCHILY.acl.access", text}, {"SCHILY.xattr.system.posix_acl_access", list}})
                  .file("both", "x", 0640)
                  .pax({{"SCHILY.xattr.system.posix_acl_access", "no list"}})
                  .file("wrong", "x", 0640)
                  .end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  std::array<char, 256> value{};
  for (const auto* path : {"alone", "both"}) {
    const auto size =
        ::getxattr((place.root() / path).c_str(), "system.posix_acl_access", value.data(), value.size());
    if (size < 0 && errno == ENOTSUP) GTEST_SKIP() << "the file system has no access control lists";
    EXPECT_EQ(std::string(value.data(), size < 0 ? 0 : static_cast<std::size_t>(size)), list) << path;
  }
  EXPECT_THAT(unpacked->notes, ElementsAre(HasSubstr("access control lists were not kept")));
}

TEST_F(ArchiveExtraction, AccessControlListsWithNamesAreNoted) {
  place.write(
      TarBuilder()
          .pax({{"SCHILY.acl.access", "user::rw-,user:nobody-here:r--,group::r--,mask::r--,other::---"}})
          .file("f", "x", 0640)
          .end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_THAT(unpacked->notes, Contains(HasSubstr("access control lists with names")));
}

TEST_F(ArchiveExtraction, AccessControlListsOfFifosAreNoted) {
  place.write(
      TarBuilder()
          .pax({{"SCHILY.acl.access", "user::rw-\nuser:1234:r--\ngroup::r--\nmask::r--\nother::---\n"}})
          .header({.name = "fifo", .type = '6', .mode = 0640})
          .end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_THAT(unpacked->notes, Contains(HasSubstr("access control lists of fifos and devices")));
}

TEST_F(ArchiveExtraction, AttributesThatAreNotKeptAreNoted) {
  place.write(TarBuilder().pax({{"SCHILY.xattr.security.selinux", "x"}}).file("f", "x").end());
  const auto unpacked = place.unpack();
  ASSERT_TRUE(unpacked) << unpacked.error().to_string();
  EXPECT_THAT(unpacked->notes, Contains(HasSubstr("security.selinux")));
}

TEST_F(ArchiveExtraction, WithoutPrivilegesOwnersAreNoted) {
  place.write(
      TarBuilder().header({.name = "f", .uid = 5}).directory("closed", 0).file("closed/f", "x").end());
  fs::permissions(place.top(), fs::perms{0777});
  fs::permissions(place.root(), fs::perms{0777});
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
              const auto unpacked = place.unpack();
              if (!unpacked) return 2;
              return unpacked->notes == std::vector<std::string>{"owners were not kept: that needs root"} ? 0
                                                                                                          : 3;
            }),
            0);
  fs::permissions(place.root() / "closed", fs::perms{0700});
  EXPECT_EQ(content("closed/f"), "x");
}

TEST_F(ArchiveExtraction, AFullFileSystemIsToldAsSuch) {
  place.write(TarBuilder().file("f", std::string(4 << 20, 'x')).end());
  const auto status = in_child([&] {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return 77;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (::mount("tmpfs", place.root().c_str(), "tmpfs", 0, "size=1m") != 0) return 77;
    const auto unpacked = place.unpack();
    return !unpacked && unpacked.error().code() == Code::disk_full ? 0 : 1;
  });
  if (status == 77) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

TEST_F(ArchiveExtraction, AKernelWithoutOpenat2IsRefused) {
  place.write(TarBuilder().file("f", "x").end());
  const auto status = in_child([&] {
    std::array<sock_filter, 4> program{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter{.len = program.size(), .filter = program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 77;
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 77;
    const auto unpacked = place.unpack();
    if (unpacked || unpacked.error().code() != Code::volume_failed) return 1;
    return unpacked.error().message().contains("openat2") ? 0 : 2;
  });
  if (status == 77) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(place.root()));
}

TEST_F(ArchiveExtraction, APlaceThatIsNotEmptyIsRefused) {
  place.write(TarBuilder().file("f", "x").end());
  fs::create_directory(place.root() / "lost+found");
  fs::create_symlink(place.canary(), place.root() / "already");
  const auto refused = place.unpack();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::volume_failed);
  EXPECT_THAT(refused.error().message(), HasSubstr("already"));
  fs::remove(place.root() / "already");
  EXPECT_TRUE(place.unpack());
}

TEST_F(ArchiveExtraction, ALinkThatAppearsMeanwhileIsNotFollowed) {
  // Another process replaces a directory by a link to the canary while the archive is being unpacked.
  TarBuilder archive;
  archive.directory("d");
  for (int i = 0; i < 100; ++i) archive.file("e" + std::to_string(i) + "/f", "x");
  place.write(archive.file("d/evil", "x").end());
  ArchiveOptions options;
  options.progress = [&](auto, auto, std::uint64_t entries) {
    if (entries != 100) return;
    fs::remove(place.root() / "d");
    fs::create_directory_symlink(place.canary(), place.root() / "d");
  };
  const auto unpacked = place.unpack(options);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code(), Code::volume_failed);
  EXPECT_EQ(place.outside(), "");
}

TEST_F(ArchiveExtraction, AStopInsideALargeFileIsSeen) {
  TarBuilder archive;
  for (int i = 0; i < 99; ++i) archive.file(std::to_string(i));
  place.write(archive.file("first").file("large", std::string(8 << 20, 'x')).end());
  std::stop_source stop;
  ArchiveOptions options{.stop = stop.get_token()};
  options.progress = [&](auto, auto, auto) { stop.request_stop(); };
  const auto unpacked = place.unpack(options);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code(), Code::cancelled);
  // The file was begun, and its content was not written.
  EXPECT_EQ(fs::file_size(place.root() / "large"), 0U);
}

}  // namespace
}  // namespace pawl::images
