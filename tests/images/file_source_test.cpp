// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/names.hpp"
#include "images/source/source.hpp"
#include "tests/images/s3_world.hpp"

namespace pawl::images::test {
namespace {

namespace fs = std::filesystem;

struct FileSource : testing::Test {
  FileSource() {
    fs::create_directories(allowed / "dir");
    source = *open_files({allowed.path()});
  }
  Result<Fetched> fetch(const std::string& path, const FetchOptions& options = {}) {
    return source->fetch({"", path}, target, options);
  }
  Code look(const std::string& path) { return code_of(source->look({"", path}, {})); }

  /// Copies until `at` bytes are there, then stops.
  Result<Fetched> fetch_until(const std::string& path, std::uint64_t at) {
    std::stop_source stop;
    const auto progress = [&](std::uint64_t done, std::uint64_t) {
      if (done >= at) stop.request_stop();
    };
    return fetch(path, {.progress = progress, .stop = stop.get_token()});
  }

  TemporaryDirectory allowed;
  TemporaryDirectory targets;
  std::string target = targets / "image.tar";
  std::unique_ptr<Source> source;
};

TEST_F(FileSource, AFileIsCopiedWithItsHash) {
  const auto bytes = some_bytes(2'500'000);
  write_file(allowed / "dir/a.tar", bytes);
  const auto info = source->look({"", allowed / "dir/a.tar"}, {});
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->bytes, bytes.size());
  const auto fetched = fetch(allowed / "dir/a.tar");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(fetched->etag, info->etag);
  EXPECT_EQ(content_of(target), bytes);
  EXPECT_FALSE(fs::exists(target + ".part") || fs::exists(target + ".part.tag"));
}

TEST_F(FileSource, AnEmptyFileIsCopied) {
  write_file(allowed / "empty", "");
  const auto fetched = fetch(allowed / "empty");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->sha256, sha256_hex(""));
  EXPECT_TRUE(fs::exists(target));
}

TEST_F(FileSource, OnlyFilesBelowTheDirectoriesHaveAName) {
  write_file(targets / "outside", "bytes");
  for (const auto& path :
       {targets / "outside", std::string("relative"), allowed.path(), allowed / "", allowed / "../outside",
        allowed / "dir/../a", allowed / "\xff", allowed.path() + "-more/a"})
    EXPECT_EQ(look(path), Code::invalid_argument) << path;
  EXPECT_EQ(code_of(source->look({"bucket", allowed / "a"}, {})), Code::invalid_argument);
}

TEST_F(FileSource, WhatIsNotThereIsMissing) {
  write_file(allowed / "file", "bytes");
  EXPECT_EQ(look(allowed / "absent"), Code::source_missing);
  EXPECT_EQ(look(allowed / "file/below"), Code::source_missing);
  EXPECT_EQ(code_of(fetch(allowed / "absent")), Code::source_missing);
  EXPECT_TRUE(targets.is_empty());
}

TEST_F(FileSource, SymbolicLinksAreNotFollowedWhereverTheyLead) {
  write_file(targets / "outside", "bytes");
  write_file(allowed / "inside", "bytes");
  fs::create_symlink(targets / "outside", allowed / "out");
  fs::create_symlink("inside", allowed / "in");
  fs::create_directory_symlink(targets.path(), allowed / "way");
  for (const auto* name : {"out", "in", "way/outside"})
    EXPECT_EQ(look(allowed / name), Code::source_denied) << name;
}

TEST_F(FileSource, OnlyRegularFilesAreRead) {
  ASSERT_EQ(mkfifo((allowed / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(look(allowed / "pipe"), Code::source_denied);
  EXPECT_EQ(look(allowed / "dir"), Code::source_denied);
}

TEST_F(FileSource, AnInterruptedCopyGoesOnWhereItWasStopped) {
  const auto bytes = some_bytes(5'000'000);
  write_file(allowed / "a", bytes);
  EXPECT_EQ(code_of(fetch_until(allowed / "a", 2'000'000)), Code::cancelled);
  EXPECT_FALSE(fs::exists(target));
  const auto fetched = fetch(allowed / "a");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_GE(fetched->resumed_at, 2'000'000U);
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(FileSource, AFileThatWasReplacedMeanwhileIsCopiedAnew) {
  write_file(allowed / "a", some_bytes(5'000'000));
  EXPECT_EQ(code_of(fetch_until(allowed / "a", 2'000'000)), Code::cancelled);
  write_file(allowed / "b", "another");
  fs::rename(allowed / "b", allowed / "a");
  EXPECT_EQ(code_of(fetch(allowed / "a")), Code::source_changed);
  EXPECT_TRUE(targets.is_empty());
  EXPECT_TRUE(fetch(allowed / "a"));
  EXPECT_EQ(content_of(target), "another");
}

TEST_F(FileSource, AFileThatChangesWhileItIsCopiedIsNoticed) {
  for (const std::string& change : {some_bytes(5'000'001), std::string("short")}) {
    write_file(allowed / "a", some_bytes(5'000'000));
    const auto progress = [&](std::uint64_t, std::uint64_t) { write_file(allowed / "a", change); };
    EXPECT_EQ(code_of(fetch(allowed / "a", {.progress = progress})), Code::source_changed);
    EXPECT_TRUE(targets.is_empty());
  }
}

TEST_F(FileSource, AFileOverTheLimitIsRefusedAndWhatWasKeptOfItGoes) {
  write_file(allowed / "a", some_bytes(5'000'000));
  EXPECT_EQ(code_of(fetch_until(allowed / "a", 2'000'000)), Code::cancelled);
  EXPECT_EQ(code_of(fetch(allowed / "a", {.max_bytes = 4'999'999})), Code::too_large);
  EXPECT_TRUE(targets.is_empty());
}

TEST_F(FileSource, AFullDiskIsSaidAndNothingIsLeftOnIt) {
  TemporaryDirectory small;
  if (mount("tmpfs", small.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting a small file system needs more rights";
  write_file(allowed / "a", some_bytes(3'000'000));
  const auto fetched = source->fetch({"", allowed / "a"}, small / "a", {});
  EXPECT_EQ(code_of(fetched), Code::disk_full);
  EXPECT_TRUE(small.is_empty());

  // There was enough when it began.
  const auto fill = [&](std::uint64_t, std::uint64_t) { write_file(small / "other", some_bytes(1'000'000)); };
  write_file(allowed / "b", some_bytes(1'040'000));
  const auto late = source->fetch({"", allowed / "b"}, small / "b", {.progress = fill});
  EXPECT_EQ(code_of(late), Code::disk_full);
  fs::remove(small / "other");
  EXPECT_TRUE(small.is_empty());
  umount(small.path().c_str());
}

TEST_F(FileSource, DirectoriesAreAbsoluteAndThere) {
  EXPECT_EQ(code_of(open_files({"relative"})), Code::invalid_argument);
  EXPECT_EQ(code_of(open_files({allowed / "absent"})), Code::invalid_argument);
  EXPECT_TRUE(open_files({}));
}

}  // namespace
}  // namespace pawl::images::test
