// SPDX-License-Identifier: Apache-2.0
#include "images/image_services.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "images/verbs.hpp"

namespace pawl::images {
namespace {

namespace fs = std::filesystem;

class ImageFile : public testing::Test {
 protected:
  ImageFile() { write("as it was"); }
  ~ImageFile() override { std::filesystem::remove(path_); }

  void write(std::string_view content) const { std::ofstream(path_, std::ios::binary) << content; }
  std::string checksum() { return services_.checksum_of(path_, {}).value(); }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("pawl-image-services-" + std::to_string(::getpid())))
          .string();
  ImageServices services_{ImagesOptions{}};
};

TEST_F(ImageFile, IsKnownByItsChecksumOnceItWasRead) {
  EXPECT_FALSE(services_.has_checksum(path_, sha256_of_file(path_, {}).value()));
  const auto found = checksum();
  EXPECT_EQ(found, sha256_of_file(path_, {}).value());
  EXPECT_TRUE(services_.has_checksum(path_, found));
  EXPECT_FALSE(services_.has_checksum(path_, std::string(64, '0')));
}

TEST_F(ImageFile, IsNotKnownAnyMoreOnceItIsWrittenEvenInTheSameMoment) {
  for (int round = 0; round < 100; ++round) {
    const auto found = checksum();
    ASSERT_TRUE(services_.has_checksum(path_, found));
    write(round % 2 == 0 ? "otherwise" : "as it was");
    EXPECT_FALSE(services_.has_checksum(path_, found));
  }
}

TEST_F(ImageFile, IsNotKnownWhereAnotherHasTakenItsPlaceOrNone) {
  const auto found = checksum();
  std::filesystem::copy_file(path_, path_ + ".new");
  std::filesystem::rename(path_ + ".new", path_);
  EXPECT_FALSE(services_.has_checksum(path_, found));
  std::filesystem::remove(path_);
  EXPECT_FALSE(services_.has_checksum(path_, found));
}

/// What `pawl images process` shows while its run goes through these answers.
class ProcessVerb : public testing::Test {
 protected:
  struct Answer {
    std::string state;
    std::string step;
    double progress = 0;
  };

  /// One answer about process-image for each of those about download-image, and then its end.
  int run(std::vector<Answer> downloads) {
    std::size_t asked = 0;
    VerbCall call{.arguments = {{"url", "s3://b/k"}}};
    call.ask = [&](http::Method method, const std::string& target,
                   const std::string&) -> Result<std::string> {
      if (method == http::Method::post) {
        return R"({"image_id":"a","flow":"process-image","run":"1","state":"running"})";
      }
      if (target.contains("process-image")) {
        const bool finished = asked == downloads.size();
        return fmt::format(
            R"({{"flow":"process-image","id":"a","state":"{}","finished":{},"response":{{}}}})",
            finished ? "done" : "running", finished);
      }
      if (!target.contains("download-image")) return fail(Code::unknown_instance, "not begun");
      const auto& answer = downloads[asked++];
      return fmt::format(R"({{"flow":"download-image","id":"a","state":"{}","step":"{}","progress":{}}})",
                         answer.state, answer.step, answer.progress);
    };
    call.progress = [this](std::string_view label, double fraction, std::string_view) {
      labels_.emplace_back(label);
      fractions_.push_back(fraction);
    };
    for (const auto& verb : image_verbs()) {
      if (verb.name != "process") continue;
      testing::internal::CaptureStdout();
      const auto ended = verb.run(call);
      testing::internal::GetCapturedStdout();
      return ended.value_or(-1);
    }
    return -1;
  }

  std::vector<std::string> labels_;
  std::vector<double> fractions_;
};

TEST_F(ProcessVerb, TakesNothingBackOfWhatItHasShown) {
  ASSERT_EQ(run({{"running", "download", 0.9},
                 {"running", "validate", 0.1},
                 {"running", "download", 0.2},
                 {"running", "validate", 1}}),
            0);
  ASSERT_GE(fractions_.size(), 4U);
  fractions_.resize(4);
  EXPECT_TRUE(std::ranges::is_sorted(fractions_)) << testing::PrintToString(fractions_);
}

TEST_F(ProcessVerb, TakesItsBarAwayBeforeItPrintsTheResult) {
  ASSERT_EQ(run({{"running", "download", 0.5}}), 0);
  EXPECT_EQ(labels_.back(), "");
}

/// Whether the server takes a directory for images, depending on who may change it or what leads to it.
class ImageDirectory : public testing::Test {
 protected:
  ImageDirectory() {
    auto pattern = (fs::temp_directory_path() / "pawl-directory-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
    fs::create_directories(directory());
    fs::permissions(top_ / "parent", fs::perms{0755});
    fs::permissions(directory(), fs::perms{0755});
  }
  ~ImageDirectory() override { fs::remove_all(top_); }

  fs::path directory() const { return top_ / "parent/images"; }
  static Result<void> open(const fs::path& directory, const fs::path& pool = {}) {
    ImagesOptions options;
    options.directory = directory.string();
    options.backend.root = pool.string();
    return ImageServices(options).open();
  }
  static void refused(const Result<void>& opened, const fs::path& what, std::string_view why) {
    ASSERT_FALSE(opened) << "it is taken";
    EXPECT_EQ(opened.error().code(), Code::config_invalid) << opened.error().to_string();
    EXPECT_THAT(opened.error().message(), testing::HasSubstr(what.string()));
    EXPECT_THAT(opened.error().message(), testing::HasSubstr(why));
  }
  /// Gives something to a user who is neither root nor this one; false where that is not allowed.
  static bool give_away(const fs::path& path) { return ::lchown(path.c_str(), 12345, 12345) == 0; }

  fs::path top_;
};

TEST_F(ImageDirectory, IsTakenWhereOnlyTheServerCanChangeIt) {
  const auto opened = open(directory());
  EXPECT_TRUE(opened) << opened.error().to_string();
}

TEST_F(ImageDirectory, IsRefusedWhereItsGroupOrOthersCanWriteIt) {
  for (const auto mode : {0775U, 0757U, 01777U}) {
    fs::permissions(directory(), fs::perms{mode});
    refused(open(directory()), directory(), "writable");
  }
}

TEST_F(ImageDirectory, IsRefusedWhereOthersCanWriteOneAboveIt) {
  fs::permissions(top_ / "parent", fs::perms{0777});
  refused(open(directory()), top_ / "parent", "writable");
  refused(open(top_ / "parent/new"), top_ / "parent", "writable");
  EXPECT_FALSE(fs::exists(top_ / "parent/new")) << "it was made all the same";
}

TEST_F(ImageDirectory, IsTakenBelowADirectoryWhereEverybodyKeepsTheirOwnFiles) {
  fs::permissions(top_ / "parent", fs::perms{01777});
  EXPECT_TRUE(open(directory()));
  EXPECT_TRUE(open(top_ / "parent/new"));
}

TEST_F(ImageDirectory, IsRefusedWhereItBelongsToAnotherUser) {
  if (!give_away(directory())) GTEST_SKIP() << "only root can give a directory away";
  refused(open(directory()), directory(), "belongs to user 12345");
}

TEST_F(ImageDirectory, IsRefusedWhereOneAboveItBelongsToAnotherUser) {
  if (!give_away(top_ / "parent")) GTEST_SKIP() << "only root can give a directory away";
  refused(open(directory()), top_ / "parent", "belongs to user 12345");
}

TEST_F(ImageDirectory, IsRefusedWhereItIsALinkItself) {
  fs::create_directory_symlink(directory(), top_ / "link");
  refused(open(top_ / "link"), top_ / "link", "symbolic link");
}

TEST_F(ImageDirectory, IsTakenByWayOfALinkOfTheServersUser) {
  fs::create_directory_symlink("parent/../parent", top_ / "link");
  EXPECT_TRUE(open(top_ / "link/images"));
}

TEST_F(ImageDirectory, IsRefusedByWayOfALinkOfAnotherUser) {
  fs::create_directory_symlink("parent", top_ / "link");
  if (!give_away(top_ / "link")) GTEST_SKIP() << "only root can give a link away";
  refused(open(top_ / "link/images"), top_ / "link", "belongs to user 12345");
}

TEST_F(ImageDirectory, IsRefusedByWayOfALinkToWhereOthersCanWrite) {
  fs::permissions(top_ / "parent", fs::perms{0777});
  fs::create_directory_symlink(top_ / "parent", top_ / "link");
  refused(open(top_ / "link/images"), top_ / "parent", "writable");
}

TEST_F(ImageDirectory, OfArchivesAndOfThePoolAreHeldToTheSame) {
  fs::create_directory(top_ / "pool");
  fs::permissions(top_ / "pool", fs::perms{0777});
  refused(open(directory(), top_ / "pool"), top_ / "pool", "writable");
  fs::remove(directory() / "archives");
  fs::create_directory_symlink(top_ / "parent", directory() / "archives");
  refused(open(directory()), directory() / "archives", "symbolic link");
}

TEST_F(ImageDirectory, IsMadeSoThatOthersCannotWriteItWhateverTheMaskSays) {
  const auto mask = ::umask(0);
  const auto opened = open(directory() / "a/b");
  ::umask(mask);
  ASSERT_TRUE(opened) << opened.error().to_string();
  for (const auto* made : {"a", "a/b", "a/b/archives", "a/b/pool"}) {
    EXPECT_EQ(fs::status(directory() / made).permissions(), fs::perms{0755}) << made;
  }
}

}  // namespace
}  // namespace pawl::images
