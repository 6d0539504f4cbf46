// SPDX-License-Identifier: Apache-2.0
// What the S3 source does with answers that a real store does not give on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/names.hpp"
#include "images/source/s3.hpp"
#include "tests/images/s3_world.hpp"
#include "tests/support/s3_server_double.hpp"

namespace pawl::images::test {
namespace {

using pawl::test::http_answer;
using pawl::test::S3ServerDouble;
using pawl::test::ScriptedReply;
using testing::HasSubstr;
using testing::Not;

const ObjectName kObject{"images", "a.tar"};
const std::string kTag = "ETag: \"one\"\r\n";

std::unique_ptr<Source> signed_source(const S3ServerDouble& store, std::string token = "") {
  return *s3::open_with_clock({.endpoint = store.endpoint(),
                               .key_id = "id",
                               .secret = "the-secret",
                               .session_token = std::move(token)},
                              [] { return *parse_time("2026-11-16T12:00:00Z"); });
}

/// An answer that promises all of `bytes` and breaks off.
std::string broken_answer(const std::string& bytes, std::size_t sent) {
  auto answer = http_answer("200 OK", kTag, bytes);
  answer.resize(answer.size() - (bytes.size() - sent));
  return answer;
}

std::string rest_of(const std::string& bytes, std::size_t first, const std::string& tag = kTag) {
  const auto range = "Content-Range: bytes " + std::to_string(first) + "-" +
                     std::to_string(bytes.size() - 1) + "/" + std::to_string(bytes.size()) + "\r\n";
  return http_answer("206 Partial Content", range + tag, bytes.substr(first));
}

std::string refusal(const std::string& status, const std::string& code, const std::string& headers = "") {
  return http_answer(status, headers, "<Error><Code>" + code + "</Code><Message>Because.</Message></Error>");
}

struct S3Fault : testing::Test {
  /// Fetches once from a store with these replies.
  Result<Fetched> fetch(const S3ServerDouble& store, const FetchOptions& options = {}) {
    return signed_source(store)->fetch(kObject, target, options);
  }
  bool has_part() const { return std::filesystem::exists(target + ".part"); }

  TemporaryDirectory directory;
  std::string target = directory / "a.tar";
  std::string bytes = some_bytes(300'000);
};

TEST_F(S3Fault, WhatMayGoAwayByItselfIsAFailureOfTheSource) {
  for (const auto* status : {"500 Oops", "503 Busy", "429 Slow", "408 Late", "502 Bad"}) {
    const S3ServerDouble store({{refusal(status, "SlowDown")}});
    const auto fetched = fetch(store);
    EXPECT_EQ(code_of(fetched), Code::source_failed) << status;
    EXPECT_EQ(fetched.error().field("s3_code"), "SlowDown");
    EXPECT_THAT(fetched.error().message(), HasSubstr("SlowDown: Because."));
  }
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, ARefusalIsNoFailureOfTheSource) {
  for (const auto* status : {"403 No", "401 No", "400 No", "405 No"}) {
    const S3ServerDouble store({{refusal(status, "AccessDenied")}});
    EXPECT_EQ(code_of(fetch(store)), Code::source_denied) << status;
  }
}

TEST_F(S3Fault, ARequestThatWasTooSlowIsTriedAgainThoughItsStatusIsThatOfARefusal) {
  const S3ServerDouble store({{refusal("400 Bad", "RequestTimeout")}});
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
}

TEST_F(S3Fault, AnEndpointWithoutAListenerIsAFailureOfTheSource) {
  const auto source = *open_s3({.endpoint = "http://127.0.0.1:1"});
  EXPECT_EQ(code_of(source->look(kObject, {})), Code::source_failed);
  EXPECT_EQ(code_of(source->fetch(kObject, target, {})), Code::source_failed);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, WhatCameBeforeABreakIsKeptAndTheNextCallAsksForTheRestOfTheSameObject) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {rest_of(bytes, 100'000)}});
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_EQ(content_of(target + ".part"), bytes.substr(0, 100'000));
  EXPECT_FALSE(std::filesystem::exists(target));

  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_THAT(store.requests()[1], HasSubstr("range: bytes=100000-\r\n"));
  EXPECT_THAT(store.requests()[1], HasSubstr("if-match: \"one\"\r\n"));
  EXPECT_EQ(fetched->resumed_at, 100'000U);
  EXPECT_EQ(fetched->bytes, bytes.size());
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(content_of(target), bytes);
  EXPECT_FALSE(has_part());
  EXPECT_FALSE(std::filesystem::exists(target + ".part.tag"));
}

TEST_F(S3Fault, AStoreThatIgnoresTheRangeIsReadFromTheBeginning) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {http_answer("200 OK", kTag, bytes)}});
  EXPECT_FALSE(fetch(store));
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->resumed_at, 0U);
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(S3Fault, ARestOfAnotherObjectIsNotPutTogetherWithWhatWasKept) {
  for (const auto& second : {rest_of(bytes, 100'000, "ETag: \"two\"\r\n"), rest_of(bytes, 100'000, ""),
                             rest_of(bytes + "x", 100'000), refusal("412 Changed", "PreconditionFailed"),
                             refusal("416 Range", "InvalidRange")}) {
    const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {second}});
    EXPECT_FALSE(fetch(store));
    EXPECT_EQ(code_of(fetch(store)), Code::source_changed) << second.substr(0, 200);
    EXPECT_TRUE(directory.is_empty());
  }
}

TEST_F(S3Fault, ARestThatBeginsElsewhereIsThrownAway) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {rest_of(bytes, 99'999)}});
  EXPECT_FALSE(fetch(store));
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, WhatWasWrittenBeforeTheMachineWentDownIsTrustedOnlyAsFarAsItIsDurable) {
  const S3ServerDouble store(
      {{broken_answer(bytes, 100'000)}, {broken_answer(bytes, 100'000)}, {rest_of(bytes, 60'000)}});
  const auto edit_tag = [&](const std::string& durable) {
    auto tag = content_of(target + ".part.tag");
    const auto boot = tag.find("\nboot ") + 6;
    tag = tag.substr(0, boot) + "another\ndurable " + durable + "\n";
    write_file(target + ".part.tag", tag);
  };
  EXPECT_FALSE(fetch(store));
  edit_tag("0");
  EXPECT_FALSE(fetch(store));
  EXPECT_THAT(store.requests()[1], Not(HasSubstr("range:")));
  edit_tag("60000");
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(fetched->resumed_at, 60'000U);
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
}

TEST_F(S3Fault, WhatWasKeptOfOneObjectIsNotUsedForAnother) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {http_answer("200 OK", kTag, "other")}});
  EXPECT_FALSE(fetch(store));
  const auto fetched = signed_source(store)->fetch({"images", "b.tar"}, target, {});
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(content_of(target), "other");
}

TEST_F(S3Fault, APartThatIsWholeNeedsOnlyALookAtTheObject) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {http_answer("200 OK", kTag, bytes)}});
  EXPECT_FALSE(fetch(store));
  write_file(target + ".part", bytes);  // as where the process died just before it gave the file its name
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_THAT(store.requests()[1], testing::StartsWith("HEAD /images/a.tar "));
  EXPECT_EQ(fetched->sha256, sha256_hex(bytes));
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(S3Fault, NothingIsKeptOfAnObjectWhoseTagDoesNotPromiseTheSameBytes) {
  for (const auto* tag : {"ETag: W/\"one\"\r\n", ""}) {
    auto answer = http_answer("200 OK", tag, bytes);
    answer.resize(answer.size() - 1);
    const S3ServerDouble store({{answer}});
    EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
    EXPECT_TRUE(directory.is_empty());
  }
}

TEST_F(S3Fault, AStoreThatFallsSilentIsAFailureOfTheSource) {
  const S3ServerDouble store({{broken_answer(bytes, 100), true}});
  const auto source =
      *open_s3({.endpoint = store.endpoint(), .stall_timeout = std::chrono::milliseconds(200)});
  EXPECT_EQ(code_of(source->fetch(kObject, target, {})), Code::source_failed);
}

TEST_F(S3Fault, AStopEndsTheWaitForAStoreThatIsSilent) {
  std::stop_source stop;
  const S3ServerDouble store(
      {{"", true, [&] { stop.request_stop(); }}, {"", true, [&] { stop.request_stop(); }}});
  EXPECT_EQ(code_of(fetch(store, {.stop = stop.get_token()})), Code::cancelled);
  stop = std::stop_source();
  EXPECT_EQ(code_of(signed_source(store)->look(kObject, stop.get_token())), Code::cancelled);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, AnAnswerWithoutALengthIsRefusedBecauseABreakWouldLookLikeItsEnd) {
  const S3ServerDouble store({{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes}});
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, AnAnswerInChunksHasAnEndAndIsTaken) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  const S3ServerDouble store({{head + "5\r\nhello\r\n0\r\n\r\n"}, {head + "5\r\nhello\r\n"}});
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(content_of(target), "hello");
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_FALSE(has_part());
}

TEST_F(S3Fault, AnObjectOverTheLimitIsRefusedBeforeAndWhileItComes) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
  const S3ServerDouble store({{http_answer("200 OK", kTag, bytes)},
                              {chunked + "5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n"},
                              {http_answer("200 OK", kTag, "123456789")}});
  EXPECT_EQ(code_of(fetch(store, {.max_bytes = bytes.size() - 1})), Code::too_large);
  EXPECT_EQ(code_of(fetch(store, {.max_bytes = 9})), Code::too_large);
  EXPECT_TRUE(directory.is_empty());
  EXPECT_TRUE(fetch(store, {.max_bytes = 9}));
}

TEST_F(S3Fault, MoreThanWasAnnouncedIsThrownAway) {
  const std::string chunked = "HTTP/1.1 206 Rest\r\nContent-Range: bytes 100000-299999/300000\r\n" + kTag +
                              "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n40000\r\n" +
                              std::string(0x40000, 'x') + "\r\n0\r\n\r\n";
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}, {chunked}});
  EXPECT_FALSE(fetch(store));
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_TRUE(directory.is_empty());
}

TEST_F(S3Fault, WhatIsStoredCompressedStaysCompressed) {
  const S3ServerDouble store(
      {{http_answer("200 OK", kTag + "Content-Encoding: gzip\r\n", "no gzip at all")}});
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(content_of(target), "no gzip at all");
  EXPECT_THAT(store.requests()[0], Not(HasSubstr("ccept-")));
}

TEST_F(S3Fault, ProgressEndsWithTheWholeAndNeverGoesBack) {
  const S3ServerDouble store({{http_answer("200 OK", kTag, bytes)}});
  std::uint64_t last = 0;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, bytes.size());
    last = done;
  };
  EXPECT_TRUE(fetch(store, {.progress = progress}));
  EXPECT_EQ(last, bytes.size());
}

TEST_F(S3Fault, TwoFetchesToTheSamePathDoNotMix) {
  const S3ServerDouble store({{http_answer("200 OK", kTag, bytes)}});
  Code other = Code::internal;
  const auto progress = [&](std::uint64_t, std::uint64_t) { other = code_of(fetch(store)); };
  const auto fetched = fetch(store, {.progress = progress});
  EXPECT_EQ(other, Code::source_failed);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_EQ(content_of(target), bytes);
}

TEST_F(S3Fault, ARedirectOnTheSameHostIsFollowedAndSignedAnew) {
  const S3ServerDouble store({{http_answer("307 Elsewhere", "Location: {origin}/images/b%20c.tar\r\n", "")},
                              {http_answer("200 OK", kTag, bytes)}});
  const auto fetched = fetch(store);
  ASSERT_TRUE(fetched) << fetched.error().to_string();
  EXPECT_THAT(store.requests()[1], testing::StartsWith("GET /images/b%20c.tar "));
  const auto signature = [](const std::string& head) { return head.substr(head.find("Signature="), 74); };
  EXPECT_NE(signature(store.requests()[0]), signature(store.requests()[1]));
}

TEST_F(S3Fault, ARedirectElsewhereIsRefusedAndNothingIsSentThere) {
  const S3ServerDouble other({{http_answer("200 OK", kTag, bytes)}});
  for (const auto& location :
       {other.endpoint() + "/images/a.tar", std::string("http://localhost/images/a.tar"),
        std::string("file:///etc/passwd"), std::string("{origin}/a?X-Amz-Signature=1")}) {
    const S3ServerDouble store({{http_answer("307 Elsewhere", "Location: " + location + "\r\n", "")}});
    EXPECT_EQ(code_of(fetch(store)), Code::source_denied) << location;
  }
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(S3Fault, RedirectsThatGoInACircleEnd) {
  const ScriptedReply again{http_answer("301 Elsewhere", "Location: {origin}/images/a.tar\r\n", "")};
  const S3ServerDouble store({again, again, again, again, again});
  EXPECT_EQ(code_of(fetch(store)), Code::source_failed);
  EXPECT_EQ(store.requests().size(), 4U);
}

TEST_F(S3Fault, TheRegionThatTheStoreNamesIsSignedFor) {
  const S3ServerDouble store({{http_answer("301 Moved", "x-amz-bucket-region: eu-west-1\r\n", "")},
                              {http_answer("200 OK", kTag, bytes)}});
  ASSERT_TRUE(fetch(store));
  EXPECT_THAT(store.requests()[0], HasSubstr("/20261116/us-east-1/s3/aws4_request,"));
  EXPECT_THAT(store.requests()[1], HasSubstr("/20261116/eu-west-1/s3/aws4_request,"));
}

TEST_F(S3Fault, AClockThatIsOffIsCorrectedByTheStoresOnce) {
  const ScriptedReply skewed{
      refusal("403 No", "RequestTimeTooSkewed", "Date: Tue, 17 Nov 2026 18:00:00 GMT\r\n")};
  const S3ServerDouble store(
      {skewed, {http_answer("200 OK", kTag, bytes)}, {http_answer("200 OK", kTag, bytes)}});
  const auto source = signed_source(store);
  ASSERT_TRUE(source->fetch(kObject, target, {}));
  EXPECT_THAT(store.requests()[0], HasSubstr("x-amz-date: 20261116T120000Z\r\n"));
  EXPECT_THAT(store.requests()[1], HasSubstr("x-amz-date: 20261117T180000Z\r\n"));
  ASSERT_TRUE(source->fetch(kObject, target, {}));
  EXPECT_THAT(store.requests()[2], HasSubstr("x-amz-date: 20261117T180000Z\r\n"));

  const S3ServerDouble stubborn({skewed, skewed, skewed});
  const auto fetched = fetch(stubborn);
  EXPECT_EQ(code_of(fetched), Code::source_denied);
  EXPECT_EQ(fetched.error().field("s3_code"), "RequestTimeTooSkewed");
  EXPECT_EQ(stubborn.requests().size(), 2U);
}

TEST_F(S3Fault, ALookThatIsRefusedFindsOutWhyByAskingForAByte) {
  const S3ServerDouble store({{"HTTP/1.1 403 No\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"},
                              {refusal("403 No", "InvalidAccessKeyId")}});
  const auto info = signed_source(store)->look(kObject, {});
  EXPECT_EQ(code_of(info), Code::source_denied);
  EXPECT_EQ(info.error().field("s3_code"), "InvalidAccessKeyId");
}

TEST_F(S3Fault, SecretsAreNotInErrorsEvenWhereTheStoreRepeatsThem) {
  const auto body =
      http_answer("403 No", "", "<Code>No</Code><Message>You sent the-token and the-secret</Message>");
  const S3ServerDouble store({{body}});
  const auto fetched = signed_source(store, "the-token")->fetch(kObject, target, {});
  ASSERT_EQ(code_of(fetched), Code::source_denied);
  EXPECT_THAT(store.requests()[0], HasSubstr("x-amz-security-token: the-token\r\n"));
  EXPECT_THAT(fetched.error().to_string(), Not(HasSubstr("the-token")));
  EXPECT_THAT(fetched.error().to_string(), Not(HasSubstr("the-secret")));
  EXPECT_THAT(fetched.error().to_string(), Not(HasSubstr("Signature")));
}

TEST_F(S3Fault, OfALongRefusalOnlyTheBeginningIsRead) {
  const S3ServerDouble store({{refusal("403 No", "AccessDenied</Code>" + std::string(4'000'000, ' '))}});
  const auto fetched = fetch(store);
  EXPECT_EQ(code_of(fetched), Code::source_denied);
  EXPECT_EQ(fetched.error().field("s3_code"), "AccessDenied");
}

TEST_F(S3Fault, WithoutAKeyRequestsAreNotSigned) {
  const S3ServerDouble store({{http_answer("200 OK", kTag, bytes)}});
  EXPECT_TRUE((*open_s3({.endpoint = store.endpoint()}))->fetch(kObject, target, {}));
  EXPECT_THAT(store.requests()[0], Not(HasSubstr("uthorization")));
}

TEST_F(S3Fault, ATargetThatCannotBeWrittenIsSaid) {
  const S3ServerDouble store({});
  const auto fetched = signed_source(store)->fetch(kObject, directory / "absent/a.tar", {});
  EXPECT_EQ(code_of(fetched), Code::store_io);
  EXPECT_THAT(fetched.error().message(), HasSubstr("absent/a.tar.part"));
}

TEST_F(S3Fault, WhatAnInterruptionLeftCanBeForgotten) {
  const S3ServerDouble store({{broken_answer(bytes, 100'000)}});
  EXPECT_FALSE(fetch(store));
  EXPECT_FALSE(directory.is_empty());
  EXPECT_TRUE(forget_part(target));
  EXPECT_TRUE(directory.is_empty());
  EXPECT_TRUE(forget_part(target));
}

}  // namespace
}  // namespace pawl::images::test
