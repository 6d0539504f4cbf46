// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/workers/types_servers.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/file_watch.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

/// Long after every file that a test makes, so that they have settled.
Time later() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) + 1h; }

TEST(FileWatch, IsHealthyWhileTheFileIsAsItShouldBe) {
  Table<FileWatch> table;
  const FileDesired desired{.path = "/f"};
  const FileObserved fine{.verdict = FileVerdict::fine};
  const FileObserved missing{.verdict = FileVerdict::missing};
  EXPECT_EQ(table.next<FileWatch::Stopped>({}, desired), "go Checking");
  EXPECT_EQ(table.next<FileWatch::Checking>(fine, desired), "go Healthy");
  EXPECT_EQ(table.next<FileWatch::Checking>(missing, desired), "go Degraded");
  EXPECT_EQ(table.next<FileWatch::Healthy>(fine, desired), "stay");
  EXPECT_EQ(table.next<FileWatch::Healthy>(missing, desired), "go Degraded");
  EXPECT_EQ(table.reason(), "/f is missing");
  EXPECT_EQ(table.next<FileWatch::Degraded>(missing, desired), "stay");
  EXPECT_EQ(table.next<FileWatch::Degraded>(fine, desired), "go Healthy");
  EXPECT_EQ(table.stop<FileWatch::Checking>({}, desired), "go Stopped");
  EXPECT_EQ(table.stop<FileWatch::Healthy>({}, desired), "go Stopped");
  EXPECT_EQ(table.stop<FileWatch::Degraded>({}, desired), "go Stopped");
  EXPECT_EQ(table.never_given(), "");
}

TEST(FileWatch, ObservesSizeTimeAndSum) {
  const TemporaryDirectory place;
  FileTools tools;
  const FileDesired desired{.path = place.write("f", "abc")};
  const auto seen = FileWatch::collect(tools, desired, collect_context(later())).value();
  EXPECT_EQ(seen.verdict, FileVerdict::fine);
  EXPECT_TRUE(seen.exists);
  EXPECT_EQ(seen.bytes, 3U);
  EXPECT_TRUE(seen.modified.has_value());
  EXPECT_EQ(seen.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FileWatch, MakesASumOnlyWhereTheFileHasChanged) {
  const TemporaryDirectory place;
  FileTools tools;
  const FileDesired desired{.path = place.write("f", "abc")};
  const auto sum = [&] {
    return FileWatch::collect(tools, desired, collect_context(later())).value().sha256;
  };
  const auto first = sum();
  EXPECT_EQ(sum(), first);
  EXPECT_EQ(tools.sums_made, 1U);
  place.write("f", "abcd");
  EXPECT_NE(sum(), first);
  EXPECT_EQ(tools.sums_made, 2U);
}

TEST(FileWatch, DoesNotTrustTheTimeOfAFileThatHasJustChanged) {
  const TemporaryDirectory place;
  FileTools tools;
  const FileDesired desired{.path = place.write("f", "abc")};
  const auto now = later() - 1h;
  const auto sum = [&] { return FileWatch::collect(tools, desired, collect_context(now)).value().sha256; };
  const auto first = sum();
  EXPECT_EQ(sum(), first);
  EXPECT_EQ(tools.sums_made, 2U);
}

TEST(FileWatch, MakesNoSumOfALargeFile) {
  const TemporaryDirectory place;
  FileTools tools;
  const auto seen_of = [&](std::size_t size) {
    const FileDesired desired{.path = place.write("f", std::string(size, 'x'))};
    return FileWatch::collect(tools, desired, collect_context(later())).value();
  };
  EXPECT_TRUE(seen_of(1U << 20U).sha256.has_value());
  const auto large = seen_of((1U << 20U) + 1);
  EXPECT_FALSE(large.sha256.has_value());
  EXPECT_EQ(large.bytes, (1U << 20U) + 1);
}

TEST(FileWatch, KeepsSilentAboutContentThatAlwaysChanges) {
  const TemporaryDirectory place;
  FileTools tools;
  const FileDesired desired{.path = place.write("f", "abc"), .min_bytes = 4, .observe_content = false};
  const auto seen = FileWatch::collect(tools, desired, collect_context(later())).value();
  EXPECT_EQ(seen.verdict, FileVerdict::too_small);
  EXPECT_FALSE(seen.bytes.has_value());
  EXPECT_FALSE(seen.modified.has_value());
  EXPECT_FALSE(seen.sha256.has_value());
}

TEST(FileWatch, JudgesWhatIsThere) {
  const TemporaryDirectory place;
  const auto file = place.write("f", "abc");
  const auto verdict = [](const FileDesired& desired) {
    FileTools tools;
    return FileWatch::collect(tools, desired, collect_context(later())).value().verdict;
  };
  EXPECT_EQ(verdict({.path = file, .max_age = 2h, .min_bytes = 3, .max_bytes = 3}), FileVerdict::fine);
  EXPECT_EQ(verdict({.path = file, .max_age = 30min}), FileVerdict::too_old);
  EXPECT_EQ(verdict({.path = file, .min_bytes = 4}), FileVerdict::too_small);
  EXPECT_EQ(verdict({.path = file, .max_bytes = 2}), FileVerdict::too_large);
  EXPECT_EQ(verdict({.path = place.path() / "none"}), FileVerdict::missing);
  EXPECT_EQ(verdict({.path = file + "/below"}), FileVerdict::missing);
  EXPECT_EQ(verdict({.path = place.path() / "none", .must_exist = false}), FileVerdict::fine);
  EXPECT_EQ(verdict({.path = place.path()}), FileVerdict::not_a_file);
}

TEST(FileWatch, DoesNotHangOnAPipe) {
  const TemporaryDirectory place;
  const std::string pipe = place.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  FileTools tools;
  EXPECT_EQ(FileWatch::collect(tools, {.path = pipe}, collect_context(later())).value().verdict,
            FileVerdict::not_a_file);
}

TEST(FileWatch, SaysWhyAFileCannotBeRead) {
  const TemporaryDirectory place;
  const auto loop = place.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  FileTools tools;
  const auto seen = FileWatch::collect(tools, {.path = loop}, collect_context(later())).value();
  EXPECT_EQ(seen.verdict, FileVerdict::unreadable);
  EXPECT_EQ(seen.error, "Too many levels of symbolic links");
}

TEST(FileWatch, DoesNothingAfterTheStop) {
  FileTools tools;
  std::stop_source stop;
  stop.request_stop();
  const auto seen = FileWatch::collect(tools, {.path = "/f"}, collect_context(later(), stop.get_token()));
  EXPECT_EQ(seen.error().code(), Code::cancelled);
}

TEST(FileWatch, RefusesAConfigurationThatCannotBeMeant) {
  EXPECT_TRUE(FileWatch::derive({.path = "/f"}));
  EXPECT_EQ(FileWatch::derive({.path = "f"}).error().field("field"), "path");
  EXPECT_EQ(FileWatch::derive({.path = "/f", .max_age = 0s}).error().field("field"), "max_age");
  EXPECT_EQ(FileWatch::derive({.path = "/f", .min_bytes = 2, .max_bytes = 1}).error().field("field"),
            "min_bytes");
}

}  // namespace
}  // namespace pawl::test
