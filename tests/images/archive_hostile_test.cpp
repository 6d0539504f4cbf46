// SPDX-License-Identifier: Apache-2.0
// Archives that mean harm: each is refused by the scan and by the extraction for the same reason, and nothing
// is written outside the root.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "images/archive/archive.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;

class HostileArchive : public testing::Test {
 protected:
  void refused(const TarBuilder& archive, Violation violation, std::string_view path,
               const ArchiveOptions& options = {}) const {
    place.write(archive);
    place.clear();
    for (const bool writing : {false, true}) {
      const auto done = writing ? place.unpack(options) : scan(place.archive(), options);
      ASSERT_FALSE(done) << (writing ? "extract" : "scan") << " accepts it";
      const auto& error = done.error();
      EXPECT_EQ(error.code(), Code::archive_hostile) << error.to_string();
      EXPECT_EQ(error.field("violation"), name(violation)) << error.to_string();
      EXPECT_EQ(error.field("path"), path) << error.to_string();
      EXPECT_EQ(place.outside(), "");
    }
  }

  /// What is fine for the scan is fine for the extraction.
  void accepted(const TarBuilder& archive, const ArchiveOptions& options = {}) const {
    place.write(archive);
    const auto scanned = scan(place.archive(), options);
    ASSERT_TRUE(scanned) << scanned.error().to_string();
    const auto unpacked = place.unpack(options);
    ASSERT_TRUE(unpacked) << unpacked.error().to_string();
    EXPECT_EQ(scanned->entries, unpacked->entries);
    EXPECT_EQ(scanned->files, unpacked->files);
    EXPECT_EQ(scanned->bytes, unpacked->bytes);
    EXPECT_EQ(place.outside(), "");
  }

  ArchivePlace place{ArchivePlace::Kind::memory};
};

TEST_F(HostileArchive, ANameThatGoesUpIsRefused) {
  refused(TarBuilder().file("../canary/evil", "x").end(), Violation::parent_path, "../canary/evil");
}

TEST_F(HostileArchive, ANameThatGoesUpInTheMiddleIsRefused) {
  refused(TarBuilder().file("a/../../canary/evil", "x").end(), Violation::parent_path, "a/../../canary/evil");
}

TEST_F(HostileArchive, ANameThatEndsInDotsIsNoParent) {
  accepted(TarBuilder().file("a..", "x").file("..b", "x").file("c..d/...", "x").end());
  EXPECT_TRUE(fs::exists(place.root() / "c..d/..."));
}

TEST_F(HostileArchive, APrefixThatGoesUpIsRefused) {
  refused(TarBuilder().header({.name = "evil", .prefix = "../canary"}).end(), Violation::parent_path,
          "../canary/evil");
}

TEST_F(HostileArchive, AnAbsoluteNameIsRefused) {
  const auto evil = (place.canary() / "evil").string();
  refused(TarBuilder().file(evil, "x").end(), Violation::absolute_path, evil);
}

TEST_F(HostileArchive, AnAbsoluteSymbolicLinkIsRefused) {
  refused(TarBuilder().symlink("bin/sh", "/bin/busybox").end(), Violation::symlink_absolute, "bin/sh");
}

TEST_F(HostileArchive, AnAbsoluteSymbolicLinkPassesByPolicyAndKeepsItsText) {
  accepted(TarBuilder().symlink("rootfs/bin/sh", "/bin/busybox").end(),
           {.policy = {.absolute_links = AbsoluteLinkPolicy::in_root}});
  EXPECT_EQ(fs::read_symlink(place.root() / "rootfs/bin/sh"), "/bin/busybox");
}

TEST_F(HostileArchive, AnAbsoluteSymbolicLinkThatGoesUpIsRefusedByAnyPolicy) {
  refused(TarBuilder().symlink("a", "/x/../../canary").end(), Violation::symlink_escape, "a",
          {.policy = {.absolute_links = AbsoluteLinkPolicy::in_root}});
}

TEST_F(HostileArchive, AnAbsoluteLinkGoesOnFromTheRootAlsoInAChain) {
  // From its own directory "k/.." would stay inside; from the root it leads above it.
  refused(TarBuilder().symlink("k", ".").symlink("deep/er/l", "/k/..").end(), Violation::symlink_escape,
          "deep/er/l", {.policy = {.absolute_links = AbsoluteLinkPolicy::in_root}});
}

TEST_F(HostileArchive, ASymbolicLinkOutOfTheArchiveIsRefused) {
  refused(TarBuilder().symlink("a/b", "../../canary").end(), Violation::symlink_escape, "a/b");
}

TEST_F(HostileArchive, ASymbolicLinkWithinTheArchivePasses) {
  accepted(TarBuilder().symlink("a/b/c", "../../d").symlink("rootfs/usr/lib", "../lib").end());
}

TEST_F(HostileArchive, ASymbolicLinkFromRootfsOutOfRootfsIsRefused) {
  refused(TarBuilder().symlink("rootfs/a/b", "../../config").end(), Violation::symlink_escape, "rootfs/a/b");
}

TEST_F(HostileArchive, ASymbolicLinkThatLeavesByWayOfAnotherIsRefused) {
  refused(TarBuilder().symlink("a/b/c/up", "../../..").symlink("x/y/z/out", "../../../a/b/c/up/..").end(),
          Violation::symlink_escape, "x/y/z/out");
}

TEST_F(HostileArchive, ASymbolicLinkThatLeavesRootfsByWayOfALaterOneIsRefused) {
  refused(TarBuilder().symlink("rootfs/out", "a/b/up/../secret").symlink("rootfs/a/b/up", "../..").end(),
          Violation::symlink_escape, "rootfs/out");
}

TEST_F(HostileArchive, ASymbolicLinkThatWindsButStaysInsidePasses) {
  accepted(TarBuilder()
               .symlink("a/b/c/up", "../..")
               .symlink("x/y/in", "../../a//b/c/up/..")
               .symlink("loop", "loop/..")
               .symlink("gone", "missing/..")
               .end());
}

TEST_F(HostileArchive, AHardLinkToSomethingOutsideIsRefused) {
  refused(TarBuilder().hardlink("evil", "../canary/keep").end(), Violation::hardlink_escape, "evil");
}

TEST_F(HostileArchive, AHardLinkToAnAbsoluteNameIsRefused) {
  refused(TarBuilder().hardlink("evil", (place.canary() / "keep").string()).end(), Violation::hardlink_escape,
          "evil");
}

TEST_F(HostileArchive, AHardLinkToWhatComesLaterIsRefused) {
  refused(TarBuilder().hardlink("a", "b").file("b", "x").end(), Violation::hardlink_escape, "a");
}

TEST_F(HostileArchive, AHardLinkThroughASymbolicLinkIsRefused) {
  refused(TarBuilder().file("d/f", "x").symlink("s", "d").hardlink("a", "s/f").end(),
          Violation::hardlink_escape, "a");
}

TEST_F(HostileArchive, AHardLinkToASymbolicLinkIsRefused) {
  refused(TarBuilder().file("f", "x").symlink("s", "f").hardlink("a", "s").end(), Violation::hardlink_escape,
          "a");
}

TEST_F(HostileArchive, AHardLinkToADirectoryIsRefused) {
  refused(TarBuilder().directory("d").hardlink("a", "d").end(), Violation::hardlink_escape, "a");
}

TEST_F(HostileArchive, AHardLinkToItselfIsRefused) {
  refused(TarBuilder().hardlink("a", "a").end(), Violation::hardlink_escape, "a");
}

TEST_F(HostileArchive, ASetuidFileIsRefused) {
  refused(TarBuilder().file("bin/su", "x", 04755).end(), Violation::set_id, "bin/su");
}

TEST_F(HostileArchive, ASetgidFileIsRefused) {
  refused(TarBuilder().file("bin/wall", "x", 02755).end(), Violation::set_id, "bin/wall");
}

TEST_F(HostileArchive, ASetgidDirectoryPasses) {
  accepted(TarBuilder().directory("mail", 02775).end());
  EXPECT_EQ(fs::status(place.root() / "mail").permissions(), fs::perms{02775});
}

TEST_F(HostileArchive, ASetuidFileLosesTheBitByPolicy) {
  accepted(TarBuilder().file("su", "x", 04755).end(), {.policy = {.set_id = SetIdPolicy::strip}});
  EXPECT_EQ(fs::status(place.root() / "su").permissions(), fs::perms{0755});
}

TEST_F(HostileArchive, ASetuidFileKeepsTheBitByPolicy) {
  accepted(TarBuilder().file("su", "x", 04755).end(), {.policy = {.set_id = SetIdPolicy::allow}});
  EXPECT_EQ(fs::status(place.root() / "su").permissions(), fs::perms{04755});
}

TEST_F(HostileArchive, ADeviceNodeIsRefused) {
  refused(TarBuilder().header({.name = "dev/null", .type = '3', .major = 1, .minor = 3}).end(),
          Violation::device_node, "dev/null");
  refused(TarBuilder().header({.name = "dev/sda", .type = '4', .major = 8}).end(), Violation::device_node,
          "dev/sda");
}

TEST_F(HostileArchive, ADeviceNodeOutsideDevIsRefusedByAnyPolicy) {
  const ArchiveOptions options{.policy = {.devices = DevicePolicy::below_dev}};
  for (const std::string path : {"tmp/sda", "dev", "device/sda", "rootfs/devices/sda", "a/dev/sda"}) {
    refused(TarBuilder().header({.name = path, .type = '4', .major = 8}).end(), Violation::device_node, path,
            options);
  }
}

/// The limit itself in optimised builds, a tenth in the slow ones (sanitizers).
#ifdef NDEBUG
constexpr ArchiveLimits kMany{};
#else
constexpr ArchiveLimits kMany{.entries = 10'000};
#endif

TEST_F(HostileArchive, TwiceAsManyEntriesAsTheLimitAreRefusedAtTheLimit) {
  TarBuilder many;
  for (std::uint64_t i = 0; i < 2 * kMany.entries; ++i) many.symlink(fmt::format("d{}/{}", i % 100, i), "x");
  refused(many.end(), Violation::too_many_entries, fmt::format("d0/{}", kMany.entries), {.limits = kMany});
}

TEST_F(HostileArchive, AsManyEntriesAsTheLimitPassAndNotOneMore) {
  TarBuilder many;
  for (std::uint64_t i = 0; i < kMany.entries; ++i) many.symlink(std::to_string(i), "x");
  place.write(many);
  const auto scanned = scan(place.archive(), {.limits = kMany});
  ASSERT_TRUE(scanned) << scanned.error().to_string();
  EXPECT_EQ(scanned->entries, kMany.entries);
  place.write(many.file("last"));
  const auto one_more = scan(place.archive(), {.limits = kMany});
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().field("violation"), "too_many_entries");
}

TEST_F(HostileArchive, DirectoriesWithoutAnEntryAreLimitedToo) {
  refused(TarBuilder().file("a/b/c").file("d/e/f").end(), Violation::too_many_entries, "d/e/f",
          {.limits = {.entries = 3}});
}

TEST_F(HostileArchive, AFileAboveTheLimitIsRefusedBeforeItsContentIsRead) {
  // There is no content at all, and still it is the limit that speaks.
  refused(TarBuilder().header({.name = "big", .size = (1ULL << 30) + 1}), Violation::file_too_large, "big");
  refused(TarBuilder().header({.name = "big", .size_field = std::string("\x80\0\0\0\0\0\1\0\0\0\0\0", 12)}),
          Violation::file_too_large, "big");
}

TEST_F(HostileArchive, AFileOfOneGibibytePassesTheScan) {
  place.write(TarBuilder().header({.name = "big", .size = 1ULL << 30}));
  fs::resize_file(place.archive(), 512 + (1ULL << 30) + 1024);
  const auto scanned = scan(place.archive(), {});
  ASSERT_TRUE(scanned) << scanned.error().to_string();
  EXPECT_EQ(scanned->bytes, 1ULL << 30);
}

TEST_F(HostileArchive, TheHolesOfASparseFileCountForTheLimit) {
  refused(TarBuilder()
              .pax({{"GNU.sparse.major", "1"},
                    {"GNU.sparse.minor", "0"},
                    {"GNU.sparse.name", "holes"},
                    {"GNU.sparse.realsize", "1073741825"}})
              .header({.name = "GNUSparseFile.0/holes", .size = 512})
              .body("0\n")
              .end(),
          Violation::file_too_large, "holes");
}

TEST_F(HostileArchive, ASparseFileOfVeryManyPiecesIsRefused) {
  const auto with_map = [](std::string_view map) {
    return TarBuilder()
        .pax({{"GNU.sparse.major", "1"},
              {"GNU.sparse.minor", "0"},
              {"GNU.sparse.name", "holes"},
              {"GNU.sparse.realsize", "1000"}})
        .header({.name = "GNUSparseFile.0/holes", .size = 512})
        .body(map)
        .end();
  };
  refused(with_map("131073\n"), Violation::bad_size, "holes");
  refused(with_map("-1\n"), Violation::bad_size, "holes");
  accepted(with_map("0\n"));
  place.clear();

  // The older format has its map in a chain of blocks, here one that refers to a next block for ever.
  std::string block(512, '\0');
  TarBuilder chain;
  chain.header(
      {.name = "holes", .type = 'S', .prefix = std::string(138, '\1'), .magic = std::string("ustar  \0", 8)});
  block[504] = 1;
  for (int i = 0; i < 7000; ++i) chain.raw(block);
  refused(chain, Violation::bad_size, "holes");
}

TEST_F(HostileArchive, ASparseMapThatContradictsItselfIsCorruptForTheScanToo) {
  const auto refused_map = [this](std::string_view map, std::string_view size) {
    place.write(TarBuilder()
                    .file("first", "x")
                    .pax({{"GNU.sparse.major", "1"},
                          {"GNU.sparse.minor", "0"},
                          {"GNU.sparse.name", "holes"},
                          {"GNU.sparse.realsize", std::string(size)}})
                    .header({.name = "GNUSparseFile.0/holes", .size = 1536})
                    .body(map)
                    .body(std::string(1024, 'x'))
                    .file("last", "x")
                    .end());
    for (const bool writing : {true, false}) {
      place.clear();
      const auto done = writing ? place.unpack() : scan(place.archive(), {});
      ASSERT_FALSE(done) << (writing ? "extract" : "scan") << " accepts " << map;
      EXPECT_EQ(done.error().code(), Code::archive_corrupt) << done.error().to_string();
    }
  };
  refused_map("2\n0\n512\n256\n512\n", "2000");   // overlapping
  refused_map("2\n1000\n512\n0\n512\n", "2000");  // backwards
  refused_map("2\n0\n512\n1024\n512\n", "1100");  // behind the end
  refused_map("1\n9000\n1024\n", "2000");         // likewise
}

TEST_F(HostileArchive, ContentAboveTheLimitInAllIsRefused) {
  const ArchiveOptions options{.limits = {.total_bytes = 8}};
  refused(TarBuilder().file("a", "12345").file("b", "6789").end(), Violation::total_too_large, "b", options);
}

TEST_F(HostileArchive, ContentAtTheLimitPasses) {
  accepted(TarBuilder().file("a", "12345").file("b", "678").end(),
           {.limits = {.file_bytes = 5, .total_bytes = 8}});
}

TEST_F(HostileArchive, ElevenGibibytesInAllAreRefusedAtTheHeader) {
  std::ofstream out(place.archive(), std::ios::binary);
  for (int i = 0; i < 11; ++i) {
    out.seekp(i * static_cast<std::streamoff>((1LL << 30) + 512));
    out << TarBuilder().header({.name = fmt::format("f{}", i), .size = 1ULL << 30}).bytes();
  }
  out.close();
  const auto scanned = scan(place.archive(), {});
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().field("violation"), "total_too_large");
  EXPECT_EQ(scanned.error().field("path"), "f10");
}

TEST_F(HostileArchive, ASumOfSizesDoesNotOverflow) {
  const ArchiveOptions options{.limits = {.file_bytes = UINT64_MAX, .total_bytes = 10}};
  refused(
      TarBuilder()
          .file("a", "12345")
          .header({.name = "b", .size_field = std::string("\x80\0\0\0\x0f\xff\xff\xff\xff\xff\xff\xff", 12)}),
      Violation::total_too_large, "b", options);
}

TEST_F(HostileArchive, ANegativeSizeIsRefused) {
  refused(TarBuilder().header({.name = "a", .size_field = std::string(12, '\xff')}).end(),
          Violation::bad_size, "a");
  refused(TarBuilder().header({.name = "a", .size_field = "-0000000001"}).end(), Violation::bad_size, "a");
  refused(TarBuilder().pax({{"size", "-1"}}).file("a").end(), Violation::bad_size, "(pax header)");
}

TEST_F(HostileArchive, AnOverflowingSizeIsRefused) {
  refused(TarBuilder().header({.name = "a", .size_field = "\x80" + std::string(11, '\xff')}).end(),
          Violation::bad_size, "a");
  refused(TarBuilder().pax({{"size", "18446744073709551616"}}).file("a").end(), Violation::bad_size,
          "(pax header)");
  refused(TarBuilder().pax({{"size", "9223372036854775807"}}).file("a").end(), Violation::bad_size, "a");
}

TEST_F(HostileArchive, ASizeThatIsNoNumberIsRefused) {
  refused(TarBuilder().header({.name = "a", .size_field = "12x"}).end(), Violation::bad_size, "a");
  refused(TarBuilder().pax({{"size", "12x"}}).file("a").end(), Violation::bad_size, "(pax header)");
}

TEST_F(HostileArchive, ASizeOnALinkIsRefused) {
  // Some readers take what follows for content, some for the next entry.
  refused(TarBuilder()
              .file("a", "x")
              .header({.name = "b", .type = '1', .size = 512, .link = "a"})
              .file("c")
              .end(),
          Violation::bad_size, "b");
  refused(TarBuilder().header({.name = "b", .type = '2', .size = 512, .link = "a"}).end(),
          Violation::bad_size, "b");
  refused(TarBuilder().header({.name = "d/", .type = '5', .size = 512}).end(), Violation::bad_size, "d/");
}

TEST_F(HostileArchive, AFileTwiceIsRefused) {
  refused(TarBuilder().file("a", "1").file("./a", "2").end(), Violation::duplicate_name, "a");
}

TEST_F(HostileArchive, ADirectoryTwicePassesAndTheLaterModeCounts) {
  accepted(TarBuilder().directory("d/", 0700).file("d/f").directory("./d", 0750).end());
  EXPECT_EQ(fs::status(place.root() / "d").permissions(), fs::perms{0750});
}

TEST_F(HostileArchive, NamesThatDifferOnlyInCaseAreRefused) {
  refused(TarBuilder().file("usr/README").file("usr/readme").end(), Violation::case_collision, "usr/readme");
  refused(TarBuilder().directory("Usr").file("usr/a").end(), Violation::case_collision, "usr/a");
}

TEST_F(HostileArchive, NamesThatDifferOnlyInCasePassByPolicy) {
  accepted(TarBuilder().file("usr/README").file("usr/readme").end(),
           {.policy = {.case_collisions = CasePolicy::allow}});
}

TEST_F(HostileArchive, ALinkThatReplacesADirectoryIsRefused) {
  refused(TarBuilder().directory("d").file("d/a").symlink("d", "../canary").file("d/evil").end(),
          Violation::symlink_escape, "d");
  refused(TarBuilder().directory("d").file("d/a").symlink("d", "e").file("d/evil").end(),
          Violation::duplicate_name, "d");
}

TEST_F(HostileArchive, ADirectoryThatReplacesALinkIsRefused) {
  refused(TarBuilder().symlink("d", "e").directory("d").end(), Violation::duplicate_name, "d");
}

TEST_F(HostileArchive, AFileBelowASymbolicLinkIsRefused) {
  refused(TarBuilder().directory("e").symlink("d", "e").file("d/evil", "x").end(), Violation::through_symlink,
          "d/evil");
}

TEST_F(HostileArchive, AFileBelowAnAbsoluteSymbolicLinkIsRefusedByAnyPolicy) {
  refused(TarBuilder().symlink("d", place.canary().string()).file("d/evil", "x").end(),
          Violation::through_symlink, "d/evil", {.policy = {.absolute_links = AbsoluteLinkPolicy::in_root}});
}

TEST_F(HostileArchive, AFileBelowAFileIsRefused) {
  refused(TarBuilder().file("d", "x").file("d/evil", "x").end(), Violation::duplicate_name, "d/evil");
}

TEST_F(HostileArchive, ANulInANameIsRefused) {
  refused(TarBuilder().pax({{"path", std::string("a\0/../evil", 10)}}).file("a").end(), Violation::bad_name,
          "(pax header)");
  refused(TarBuilder().pax({{"linkpath", std::string("a\0b", 3)}}).symlink("l", "a").end(),
          Violation::bad_name, "(pax header)");
  refused(TarBuilder().extension('L', std::string("a\0b\0", 4)).file("a").end(), Violation::bad_name,
          "a\\x00b");
}

TEST_F(HostileArchive, AnEmptyNameIsRefused) {
  refused(TarBuilder().file("").end(), Violation::bad_name, "");
  refused(TarBuilder().pax({{"path", ""}}).file("a").end(), Violation::bad_name, "(pax header)");
  refused(TarBuilder().symlink("a", "").end(), Violation::bad_name, "a");
}

TEST_F(HostileArchive, ARootThatIsNoDirectoryIsRefused) {
  refused(TarBuilder().file(".", "x").end(), Violation::bad_name, ".");
  refused(TarBuilder().symlink("./", "a").end(), Violation::bad_name, "./");
}

TEST_F(HostileArchive, ANameOfFiveThousandBytesIsRefused) {
  std::string path;
  while (path.size() < 5000) path += "directory/";
  const auto cut = path.substr(0, 256) + "…";
  refused(TarBuilder().extension('L', path + "f").file("f").end(), Violation::bad_name, cut);
  refused(TarBuilder().pax({{"path", path + "f"}}).file("f").end(), Violation::bad_name, cut);
}

TEST_F(HostileArchive, APartOfANameAboveWhatFileSystemsTakeIsRefused) {
  refused(TarBuilder().pax({{"path", "d/" + std::string(256, 'n')}}).file("f").end(), Violation::bad_name,
          "d/" + std::string(254, 'n') + "…");
  accepted(TarBuilder().pax({{"path", "d/" + std::string(255, 'n')}}).file("f").end());
}

TEST_F(HostileArchive, ANestTooDeepIsRefused) {
  std::string path;
  for (int i = 0; i < 256; ++i) path += "d/";
  accepted(TarBuilder().pax({{"path", path}}).directory("d").end());
  refused(TarBuilder().pax({{"path", path + "f"}}).file("f").end(), Violation::bad_name,
          path.substr(0, 256) + "…");
}

TEST_F(HostileArchive, APaxHeaderOfManyBytesIsRefused) {
  // Neither its content nor an entry follows: its size alone is too much.
  refused(TarBuilder().header({.name = "bomb", .type = 'x', .size = (1U << 20) + 1}), Violation::bad_size,
          "bomb");
  refused(TarBuilder().header({.name = "bomb", .type = 'L', .size = 1ULL << 33}), Violation::bad_size,
          "bomb");
}

TEST_F(HostileArchive, AGlobalPaxHeaderThatNamesEntriesIsRefused) {
  refused(TarBuilder().extension('g', pax_record("path", "evil")).file("a").end(),
          Violation::unsupported_entry, "evil");
  refused(TarBuilder().extension('g', pax_record("size", "5")).file("a").end(), Violation::unsupported_entry,
          "(pax header)");
}

TEST_F(HostileArchive, AnEntryOfAnotherTypeIsRefused) {
  for (const char type : {'D', 'M', 'V', 'N', 'Z', '8'}) {
    refused(TarBuilder().header({.name = "odd", .type = type}).end(), Violation::unsupported_entry, "odd");
  }
}

TEST_F(HostileArchive, EveryRefusalThatASettingPermitsNamesIt) {
  const auto expect = [this](const TarBuilder& archive, std::string_view setting,
                             const ArchiveLimits& limits = {}) {
    place.write(archive);
    const auto done = scan(place.archive(), {.limits = limits});
    ASSERT_FALSE(done) << setting;
    EXPECT_NE(done.error().message().find(setting), std::string::npos) << done.error().message();
  };
  expect(TarBuilder().file("su", "x", 04755).end(), "images.set_id");
  expect(TarBuilder().symlink("sh", "/bin/busybox").end(), "images.absolute_links");
  expect(TarBuilder().header({.name = "dev/null", .type = '3'}).end(), "images.devices");
  expect(TarBuilder().file("a").file("A").end(), "images.case_collisions");
  expect(TarBuilder().file("a").file("b").end(), "images.entries", {.entries = 1});
  expect(TarBuilder().file("a", "xy").end(), "images.file_size", {.file_bytes = 1});
  expect(TarBuilder().file("a", "xy").end(), "images.content_size", {.total_bytes = 1});
  for (const auto& archive :
       {TarBuilder().file("su", "x", 04755).end(), TarBuilder().symlink("sh", "/bin/busybox").end(),
        TarBuilder().header({.name = "dev/null", .type = '3'}).end(),
        TarBuilder().file("a").file("A").end()}) {
    expect(archive, "images.policy: distribution");
  }
}

TEST_F(HostileArchive, UnprintableNamesAreEscapedInTheError) {
  refused(TarBuilder().file("../\xff\n").end(), Violation::parent_path, "../\\xff\\x0a");
}

}  // namespace
}  // namespace pawl::images
