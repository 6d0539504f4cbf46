// SPDX-License-Identifier: Apache-2.0
// What is no tar archive, or not a whole one, and what of the many dialects is read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "images/archive/archive.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;

class ArchiveFormat : public testing::Test {
 protected:
  void corrupt(std::string_view bytes, std::string_view part) const {
    place.write(bytes);
    for (const bool writing : {false, true}) {
      place.clear();
      const auto done = writing ? place.unpack() : scan(place.archive(), {});
      ASSERT_FALSE(done) << (writing ? "extract" : "scan") << " accepts it";
      EXPECT_EQ(done.error().code(), Code::archive_corrupt) << done.error().to_string();
      EXPECT_NE(done.error().message().find(part), std::string::npos) << done.error().message();
      EXPECT_EQ(place.outside(), "");
    }
  }

  ArchiveStats accepted(std::string_view bytes) const {
    place.write(bytes);
    const auto scanned = scan(place.archive(), {});
    EXPECT_TRUE(scanned) << scanned.error().to_string();
    const auto unpacked = place.unpack();
    EXPECT_TRUE(unpacked) << unpacked.error().to_string();
    return unpacked.value_or(ArchiveStats{});
  }

  std::string content(const std::string& path) const {
    std::ifstream in(place.root() / path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ArchivePlace place{ArchivePlace::Kind::memory};
};

/// What a program of scripts/setup makes of these bytes.
std::string compressed(const ArchivePlace& place, const std::string& program, std::string_view bytes) {
  const auto plain = place.top() / "plain";
  const auto packed = place.top() / "packed";
  std::ofstream(plain, std::ios::binary) << bytes;
  const auto made =
      run_command({"sh", "-c", fmt::format("{} -c <'{}' >'{}'", program, plain.string(), packed.string())});
  std::ifstream in(packed, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  fs::remove(plain);
  fs::remove(packed);
  EXPECT_EQ(made, 0) << program << " is needed; scripts/setup installs it";
  return content;
}

/// Programs that make what is read.
constexpr const char* kCompressors[] = {"gzip", "xz", "zstd"};

/// Files of several kinds, one of them larger than the pieces that are unpacked at a time.
std::string mixed_archive() {
  std::string large;
  for (int line = 0; line < 200'000; ++line) large += std::to_string(line);
  return TarBuilder()
      .directory("d")
      .file("d/small", "abc")
      .file("d/large", large)
      .pax({{"path", "d/" + std::string(200, 'n')}})
      .file("x", "long name")
      .pax({{"GNU.sparse.major", "1"},
            {"GNU.sparse.minor", "0"},
            {"GNU.sparse.name", "d/holes"},
            {"GNU.sparse.realsize", "5000"}})
      .header({.name = "GNUSparseFile.0/holes", .size = 1024})
      .body("1\n1000\n512\n")
      .body(std::string(512, 'x'))
      .hardlink("d/same", "d/small")
      .end()
      .bytes();
}

TEST_F(ArchiveFormat, CompressedArchivesAreReadAndKnownByTheirContent) {
  const auto plain = mixed_archive();
  accepted(plain);
  const auto expected = describe_tree(place.root());
  for (const auto* program : kCompressors) {
    const auto packed = compressed(place, program, plain);
    place.clear();
    EXPECT_EQ(accepted(packed).entries, 6U) << program;
    auto found = describe_tree(place.root());
    // The root has no entry, so that its time is that of unpacking.
    found.front() = expected.front();
    EXPECT_EQ(found, expected) << program;
  }
}

TEST_F(ArchiveFormat, ACompressedArchiveThatBreaksOffOrIsDamagedIsCorrupt) {
  const auto plain = mixed_archive();
  for (const auto* program : kCompressors) {
    const auto packed = compressed(place, program, plain);
    ASSERT_GT(packed.size(), 20U);
    for (std::size_t cut = 7; cut < packed.size(); cut += packed.size() / 13 + 1) {
      corrupt(packed.substr(0, cut), "the archive");
    }
    corrupt(packed.substr(0, packed.size() - 1), "breaks off");
    auto damaged = packed;
    damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
    corrupt(damaged, "the archive");
  }
  // Behind the end of the archive there is only the checksum of the compressed data.
  auto wrong_sum = compressed(place, "gzip", plain);
  wrong_sum[wrong_sum.size() - 5] = static_cast<char>(wrong_sum[wrong_sum.size() - 5] ^ 1);
  corrupt(wrong_sum, "compressed with gzip");
}

TEST_F(ArchiveFormat, SeveralCompressedPartsAreOneArchive) {
  const auto plain = mixed_archive();
  for (const auto* program : kCompressors) {
    const auto first = compressed(place, program, std::string_view(plain).substr(0, 700));
    place.clear();
    accepted(first + compressed(place, program, std::string_view(plain).substr(700)));
    EXPECT_EQ(content("d/small"), "abc") << program;
  }
}

TEST_F(ArchiveFormat, AnArchiveInsideACompressedOneThatBreaksOffIsTruncated) {
  const auto plain = mixed_archive();
  place.write(compressed(place, "gzip", std::string_view(plain).substr(0, 100'000)));
  for (const bool writing : {false, true}) {
    place.clear();
    const auto done = writing ? place.unpack() : scan(place.archive(), {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().field("violation"), "truncated") << done.error().to_string();
  }
}

TEST_F(ArchiveFormat, EveryLimitCountsWhatComesOut) {
  const auto zeros = TarBuilder().file("zeros", std::string(10 << 20, '\0')).end().bytes();
  const auto packed = compressed(place, "gzip", zeros);
  ASSERT_LT(packed.size(), 20'000U);
  place.write(packed);
  const auto expect = [this](const ArchiveLimits& limits, std::string_view violation) {
    for (const bool writing : {false, true}) {
      place.clear();
      const ArchiveOptions options{.limits = limits};
      const auto done = writing ? place.unpack(options) : scan(place.archive(), options);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code(), Code::archive_hostile) << done.error().to_string();
      EXPECT_EQ(done.error().field("violation"), violation) << done.error().to_string();
    }
  };
  expect({.file_bytes = (10 << 20) - 1}, "file_too_large");
  expect({.total_bytes = (10 << 20) - 1}, "total_too_large");
  expect({.archive_bytes = 10 << 20}, "total_too_large");
  place.clear();
  EXPECT_TRUE(place.unpack({.limits = {.archive_bytes = zeros.size()}}));

  // Nothing but what follows the end of an archive.
  place.write(
      compressed(place, "gzip", TarBuilder().file("a").end().raw(std::string(1 << 20, '\0')).bytes()));
  expect({.archive_bytes = 1 << 19}, "total_too_large");
}

TEST_F(ArchiveFormat, OtherCompressionIsNamedWithWhatIsRead) {
  const auto packed = compressed(place, "bzip2", mixed_archive());
  place.write(packed);
  const auto done = scan(place.archive(), {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().field("compression"), "bzip2");
  EXPECT_NE(done.error().message().find("gzip, zstd or xz"), std::string::npos) << done.error().message();
}

TEST_F(ArchiveFormat, ANameThatLooksLikeCompressionIsJustAName) {
  EXPECT_EQ(accepted(TarBuilder().file("BZh", "x").end().bytes()).entries, 1U);
}

TEST_F(ArchiveFormat, TextIsNoArchive) { corrupt(std::string(2000, 'x'), "no tar archive"); }

TEST_F(ArchiveFormat, AnEmptyFileIsNoArchive) { corrupt("", "empty"); }

TEST_F(ArchiveFormat, AFewBytesAreNoArchive) { corrupt("ustar", "breaks off inside a header"); }

TEST_F(ArchiveFormat, AWrongChecksumIsCorrupt) {
  corrupt(TarBuilder().header({.name = "a", .wrong_by = 1}).end().bytes(), "wrong checksum");
  corrupt(TarBuilder().file("a", "x").header({.name = "b", .wrong_by = -1}).end().bytes(),
          "entry 2 of the archive");
}

TEST_F(ArchiveFormat, AnArchiveThatBreaksOffAnywhereInsideAnEntryIsCorrupt) {
  const auto whole =
      TarBuilder().file("a", std::string(1000, 'x')).pax({{"path", "b"}}).file("b", "y").bytes();
  // Its entries begin at 0 and 1536; the second has a pax header.
  for (std::size_t cut = 1; cut < whole.size(); cut += 37) {
    if (cut == 1536) continue;
    corrupt(whole.substr(0, cut), "the archive");
  }
  for (const std::size_t cut : {512U, 1024U, 1535U, 1537U, 2048U, 2560U, 3072U})
    corrupt(whole.substr(0, cut), "the archive");
}

TEST_F(ArchiveFormat, AnArchiveWithoutItsEmptyBlocksIsWhole) {
  EXPECT_EQ(accepted(TarBuilder().file("a", "x").file("b", "y").bytes()).entries, 2U);
}

TEST_F(ArchiveFormat, OneEmptyBlockIsAnEndToo) {
  EXPECT_EQ(accepted(TarBuilder().file("a", "x").raw(std::string(512, '\0')).bytes()).entries, 1U);
}

TEST_F(ArchiveFormat, WhatFollowsTheEndIsIgnoredAsTarDoes) {
  EXPECT_EQ(accepted(TarBuilder().file("a", "x").end().file("../evil", "x").end().bytes()).entries, 1U);
  EXPECT_EQ(place.outside(), "");
}

TEST_F(ArchiveFormat, AnArchiveWithoutEntriesIsFine) {
  EXPECT_EQ(accepted(TarBuilder().end().bytes()).entries, 0U);
}

TEST_F(ArchiveFormat, ANameGivenTwiceIsCorrupt) {
  corrupt(TarBuilder().pax({{"path", "a"}, {"path", "b"}}).file("c").end().bytes(), "twice");
  corrupt(TarBuilder().pax({{"path", "a"}}).pax({{"path", "b"}}).file("c").end().bytes(), "two pax headers");
  corrupt(TarBuilder().extension('L', "a").extension('L', "b").file("c").end().bytes(), "two headers");
}

TEST_F(ArchiveFormat, ManyHeadersInFrontOfAnEntryAreCorrupt) {
  TarBuilder many;
  for (int i = 0; i < 100; ++i) many.extension('g', pax_record("comment", "x"));
  corrupt(many.file("a").end().bytes(), "more than 8 headers");
}

TEST_F(ArchiveFormat, HeadersWithoutAnEntryAreCorrupt) {
  corrupt(TarBuilder().pax({{"path", "a"}}).end().bytes(), "between the headers");
  corrupt(TarBuilder().pax({{"path", "a"}}).bytes(), "between the headers");
}

TEST_F(ArchiveFormat, ARecordOfAnotherLengthThanItSaysIsCorrupt) {
  for (const std::string_view records : {"9 path=a\nx", "99 path=a\n", "8 path=a\n", "x path=a\n", "5 =a\n",
                                         "7 path\n", "0 ", "4 =\n", "18446744073709551617 path=a\n"}) {
    corrupt(TarBuilder().extension('x', records).file("c").end().bytes(), "pax header has a record");
  }
}

TEST_F(ArchiveFormat, AnOwnerOutOfRangeIsCorrupt) {
  corrupt(TarBuilder().pax({{"uid", "4294967295"}}).file("a").end().bytes(), "owner");
}

TEST_F(ArchiveFormat, TheOldestFormatIsRead) {
  // No magic, and a directory is known by its slash alone.
  accepted(TarBuilder()
               .header({.name = "d/", .type = '\0', .mode = 0755, .magic = ""})
               .header({.name = "d/f", .type = '\0', .size = 3, .magic = ""})
               .body("abc")
               .end()
               .bytes());
  EXPECT_TRUE(fs::is_directory(place.root() / "d"));
  EXPECT_EQ(content("d/f"), "abc");
}

TEST_F(ArchiveFormat, NamesThatAreNoUtf8AreKeptByteByByte) {
  accepted(TarBuilder()
               .pax({{"path", "d/\xff\xfe"}})
               .file("x", "1")
               .file("\xe4", "2")
               .pax({{"path", "d/\xc3\xa4"}})
               .file("y", "3")
               .end()
               .bytes());
  EXPECT_EQ(content("d/\xff\xfe"), "1");
  EXPECT_EQ(content("\xe4"), "2");
  EXPECT_EQ(content("d/\xc3\xa4"), "3");
}

TEST_F(ArchiveFormat, AFileThatIsNotThereCannotBeRead) {
  const auto done = scan((place.top() / "none").string(), {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::store_io);
}

TEST_F(ArchiveFormat, ADirectoryCannotBeRead) {
  const auto done = scan(place.canary().string(), {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::store_io);
}

TEST_F(ArchiveFormat, ProgressIsToldEveryHundredEntriesAndAtTheEnd) {
  TarBuilder many;
  for (int i = 0; i < 250; ++i) many.file(std::to_string(i), "x");
  place.write(many.end());
  std::vector<std::uint64_t> counts;
  std::uint64_t last_position = 0;
  ArchiveOptions options;
  options.progress = [&](std::uint64_t position, std::uint64_t bytes, std::uint64_t entries) {
    EXPECT_GT(position, last_position);
    EXPECT_EQ(bytes, many.bytes().size());
    last_position = position;
    counts.push_back(entries);
  };
  ASSERT_TRUE(scan(place.archive(), options));
  EXPECT_EQ(counts, (std::vector<std::uint64_t>{100, 200, 250}));
  EXPECT_EQ(last_position, many.bytes().size());
}

TEST_F(ArchiveFormat, AStopEndsScanAndExtraction) {
  place.write(TarBuilder().file("a", "x").end());
  std::stop_source stop;
  stop.request_stop();
  for (const auto& done :
       {scan(place.archive(), {.stop = stop.get_token()}), place.unpack({.stop = stop.get_token()})}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::cancelled);
  }
}

}  // namespace
}  // namespace pawl::images
