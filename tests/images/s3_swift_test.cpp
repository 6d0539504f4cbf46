// SPDX-License-Identifier: Apache-2.0
// The S3 source against a store that was not written for it and checks every signature: OpenStack Swift.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/names.hpp"
#include "images/source/s3.hpp"
#include "tests/images/s3_world.hpp"
#include "tests/support/swift_server.hpp"

namespace pawl::images::test {
namespace {

using pawl::test::kSwiftKey;
using pawl::test::kSwiftSecret;
using pawl::test::shared_swift;
using testing::HasSubstr;

constexpr const char* kBucket = "images";

S3Options right_options() {
  return {.endpoint = shared_swift().endpoint(), .key_id = kSwiftKey, .secret = kSwiftSecret};
}

struct S3OnSwift : testing::Test {
  void SetUp() override {
    PAWL_NEEDS_SWIFT();
    static const bool made = [] {
      shared_swift().make_bucket(kBucket);
      return true;
    }();
    static_cast<void>(made);
  }

  /// Fetches until `at` bytes are there, then stops.
  Result<Fetched> fetch_until(const std::string& key, std::uint64_t at) {
    std::stop_source stop;
    const auto progress = [&](std::uint64_t done, std::uint64_t) {
      if (done >= at) stop.request_stop();
    };
    return (*open_s3(right_options()))
        ->fetch({kBucket, key}, target, {.progress = progress, .stop = stop.get_token()});
  }
  Result<Fetched> fetch(const std::string& key, const FetchOptions& options = {}) {
    return (*open_s3(right_options()))->fetch({kBucket, key}, target, options);
  }

  TemporaryDirectory directory;
  std::string target = directory / "image.tar";
};

TEST_F(S3OnSwift, AnObjectIsSeenAndFetchedWithItsHash) {
  const auto bytes = some_bytes(3'000'001);
  shared_swift().put(kBucket, "dir/a-1_x.tar", bytes);
  const auto source = *open_s3(right_options());
  const auto info = source->look({kBucket, "dir/a-1_x.tar"}, {});
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->bytes, bytes.size());
  const auto fetched = source->fetch({kBucket, "dir/a-1_x.tar"}, target, {});
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(fetched->etag, info->etag);
  EXPECT_EQ(fetched->resumed_at, 0U);
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(S3OnSwift, AnEmptyObjectIsAnEmptyFile) {
  shared_swift().put(kBucket, "empty", "");
  const auto fetched = fetch("empty");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->bytes, 0U);
  EXPECT_EQ(fetched->sha256, sha256_hex(""));
  EXPECT_TRUE(std::filesystem::exists(target));
}

TEST_F(S3OnSwift, AWrongSecretIsRefusedWithTheStoresReason) {
  shared_swift().put(kBucket, "secret", "bytes");
  auto options = right_options();
  options.secret = "wrong";
  const auto source = *open_s3(options);
  const auto fetched = source->fetch({kBucket, "secret"}, target, {});
  EXPECT_EQ(code_of(fetched), Code::source_denied);
  EXPECT_EQ(fetched.error().field("s3_code"), "SignatureDoesNotMatch");
  const auto info = source->look({kBucket, "secret"}, {});
  EXPECT_EQ(code_of(info), Code::source_denied);
  EXPECT_EQ(info.error().field("s3_code"), "SignatureDoesNotMatch");
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3OnSwift, AnUnknownKeyAndNoKeyAtAllAreRefused) {
  shared_swift().put(kBucket, "secret", "bytes");
  auto options = right_options();
  options.key_id = "test:nobody";
  EXPECT_EQ(code_of((*open_s3(options))->fetch({kBucket, "secret"}, target, {})), Code::source_denied);
  const auto anonymous = *open_s3({.endpoint = shared_swift().endpoint()});
  EXPECT_EQ(code_of(anonymous->fetch({kBucket, "secret"}, target, {})), Code::source_denied);
}

TEST_F(S3OnSwift, AnObjectOrABucketThatIsNotThereIsMissing) {
  const auto source = *open_s3(right_options());
  const auto fetched = source->fetch({kBucket, "absent"}, target, {});
  EXPECT_EQ(code_of(fetched), Code::source_missing);
  EXPECT_EQ(fetched.error().field("s3_code"), "NoSuchKey");
  const auto other = source->fetch({"no-such-bucket", "absent"}, target, {});
  EXPECT_EQ(code_of(other), Code::source_missing);
  EXPECT_EQ(other.error().field("s3_code"), "NoSuchBucket");
  EXPECT_EQ(code_of(source->look({kBucket, "absent"}, {})), Code::source_missing);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3OnSwift, AnObjectThatWasUploadedInPartsIsFetchedWholeAndResumed) {
  const auto bytes = some_bytes(12'000'000);
  shared_swift().put_in_parts(kBucket, "parts", {bytes.substr(0, 6'000'000), bytes.substr(6'000'000)});
  EXPECT_EQ(code_of(fetch_until("parts", 7'000'000)), Code::cancelled);
  const auto fetched = fetch("parts");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_THAT(fetched->etag, HasSubstr("-2\""));
  EXPECT_GE(fetched->resumed_at, 7'000'000U);
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
}

TEST_F(S3OnSwift, AnInterruptedFetchGoesOnWhereItWasStopped) {
  const auto bytes = some_bytes(5'000'000);
  shared_swift().put(kBucket, "resumed", bytes);
  EXPECT_EQ(code_of(fetch_until("resumed", 2'000'000)), Code::cancelled);
  const auto kept = std::filesystem::file_size(target + ".part");
  EXPECT_GE(kept, 2'000'000U);
  EXPECT_LT(kept, bytes.size());
  const auto fetched = fetch("resumed");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->resumed_at, kept);
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(S3OnSwift, AnObjectThatWasReplacedMeanwhileIsNotMixedWithWhatWasKept) {
  shared_swift().put(kBucket, "replaced", some_bytes(5'000'000));
  EXPECT_EQ(code_of(fetch_until("replaced", 2'000'000)), Code::cancelled);
  const std::string other(4'000'000, 'x');
  shared_swift().put(kBucket, "replaced", other);
  EXPECT_EQ(code_of(fetch("replaced")), Code::source_changed);
  EXPECT_TRUE(directory.is_empty());
  const auto fetched = fetch("replaced");
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->sha256, sha256_hex(other));
}

TEST_F(S3OnSwift, WhatWasKeptIsThrownAwayWhereTheObjectHasNoSuchRange) {
  const auto bytes = some_bytes(2'000'000);
  shared_swift().put(kBucket, "range", bytes);
  EXPECT_EQ(code_of(fetch_until("range", 1'500'000)), Code::cancelled);
  // The tag promises more bytes than the object has, and they seem to be there.
  auto tag = content_of(target + ".part.tag");
  tag.replace(tag.find("bytes 2000000"), 13, "bytes 9000000");
  write_file(target + ".part.tag", tag);
  write_file(target + ".part", some_bytes(2'000'000));
  EXPECT_EQ(code_of(fetch("range")), Code::source_changed);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3OnSwift, AnObjectThatVanishedLeavesNothingBehind) {
  shared_swift().put(kBucket, "vanished", some_bytes(5'000'000));
  EXPECT_EQ(code_of(fetch_until("vanished", 2'000'000)), Code::cancelled);
  shared_swift().remove(kBucket, "vanished");
  EXPECT_EQ(code_of(fetch("vanished")), Code::source_missing);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3OnSwift, AnObjectOverTheLimitIsRefused) {
  shared_swift().put(kBucket, "large", some_bytes(1001));
  EXPECT_EQ(code_of(fetch("large", {.max_bytes = 1000})), Code::too_large);
  EXPECT_TRUE(directory.is_empty());
  EXPECT_TRUE(fetch("large", {.max_bytes = 1001}));
}

TEST_F(S3OnSwift, TheBucketMayBePartOfTheHostName) {
  shared_swift().put(kBucket, "named/host.tar", "bytes");
  auto options = right_options();
  options.endpoint = shared_swift().named_endpoint();
  options.path_style = false;
  const auto fetched = (*open_s3(options))->fetch({kBucket, "named/host.tar"}, target, {});
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(content_of(target), "bytes");
}

TEST_F(S3OnSwift, AWrongRegionIsCorrectedByTheStore) {
  shared_swift().put(kBucket, "region", "bytes");
  auto options = right_options();
  options.region = "eu-west-1";
  const auto source = *open_s3(options);
  const auto info = source->look({kBucket, "region"}, {});
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_TRUE(source->fetch({kBucket, "region"}, target, {}));
}

TEST_F(S3OnSwift, AClockThatIsAnHourOffIsCorrectedByTheStore) {
  shared_swift().put(kBucket, "clock", "bytes");
  const auto late = [] {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) - std::chrono::hours(1);
  };
  const auto info = (*s3::open_with_clock(right_options(), late))->look({kBucket, "clock"}, {});
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->bytes, 5U);
  const auto source = *s3::open_with_clock(right_options(), late);
  EXPECT_TRUE(source->fetch({kBucket, "clock"}, target, {}));
}

TEST_F(S3OnSwift, TheSignatureIsRightForEveryByteThatAKeyCanHave) {
  const auto& swift = shared_swift();
  std::string printable;
  for (char c = ' '; c <= '~'; ++c) printable += c;
  for (const auto& key : {printable, std::string("\xc3\xa4\xe2\x82\xac \xf0\x9f\x90\xa7"),
                          std::string("a+b c%20d=e&f;g"), std::string("tab\tbell\a")}) {
    const auto path = std::string("/") + kBucket + "/" + key;
    const auto put = swift.request("PUT", path, {}, "content of " + key);
    EXPECT_EQ(put.status, 200) << key << put.body;
    EXPECT_EQ(swift.request("GET", path).body, "content of " + key);
  }
}

TEST_F(S3OnSwift, TheSignatureIsRightForEveryByteThatAParameterCanHave) {
  std::string printable;
  for (char c = ' '; c <= '~'; ++c) printable += c;
  const auto answer = shared_swift().request(
      "GET", std::string("/") + kBucket,
      {{"prefix", printable}, {"max-keys", "7"}, {"delimiter", "/"}, {"encoding-type", "url"}});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("<MaxKeys>7</MaxKeys>"));
}

}  // namespace
}  // namespace pawl::images::test
