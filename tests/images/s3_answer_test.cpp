// SPDX-License-Identifier: Apache-2.0
// What is read of an object store's answers, and which redirects are followed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/source/answer.hpp"
#include "images/source/s3.hpp"
#include "images/source/source.hpp"

namespace pawl::images::s3 {
namespace {

TEST(S3Answer, ARefusalIsItsCodeAndItsMessage) {
  const auto refusal = parse_refusal(
      "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>No &lt;such&gt; key &amp;amp;</Message>"
      "<Region>eu-west-1</Region></Error>");
  EXPECT_EQ(refusal.code, "NoSuchKey");
  EXPECT_EQ(refusal.message, "No <such> key &amp;");
  EXPECT_EQ(refusal.region, "eu-west-1");
}

TEST(S3Answer, ARefusalThatIsNoXmlIsNothing) {
  for (const auto* body :
       {"", "<html>", "<Code>", "<Code>Not closed", "<Code>two words</Code>", "Code>a</Code>"})
    EXPECT_EQ(parse_refusal(body).code, "") << body;
}

TEST(S3Answer, AMessageIsShortAndShowable) {
  const auto message = [](std::string_view text) {
    return parse_refusal("<Message>" + std::string(text) + "</Message>").message;
  };
  EXPECT_EQ(message("a\nb\x1b[31m"), "a b [31m");
  EXPECT_EQ(message("\xff\xfe"), "");
  const auto cut = message(std::string(255, 'a') + "\xc3\xa4 and more");
  EXPECT_EQ(cut, std::string(255, 'a'));
}

TEST(S3Answer, AStatusLineBeginsANewHead) {
  AnswerHead head;
  head.add("HTTP/1.1 100 Continue\r\n");
  head.add("Content-Length: 7\r\n");
  head.add("HTTP/2 206 \r\n");
  head.add("ETag: \"abc-4\"\r\n");
  head.add("content-range: bytes 100-199/200\r\n");
  EXPECT_EQ(head.status, 206);
  EXPECT_FALSE(head.length);
  EXPECT_EQ(head.etag, "\"abc-4\"");
  EXPECT_EQ(head.range, (ContentRange{.first = 100, .last = 199, .total = 200}));
}

TEST(S3Answer, AValueThatIsNotWellFormedCountsAsAbsent) {
  AnswerHead head;
  head.add("HTTP/1.1 2x0 OK");
  head.add("Content-Length: -1");
  head.add("Content-Range: bytes 5-4/10");
  head.add("ETag: \x01");
  head.add("x-amz-bucket-region: evil.example/");
  head.add("Date: yesterday");
  EXPECT_EQ(head.status, 0);
  EXPECT_FALSE(head.length || head.range || head.date);
  EXPECT_EQ(head.etag + head.region, "");
}

TEST(S3Answer, ARangeHasItsTotal) {
  EXPECT_EQ(parse_content_range("bytes */200"), (ContentRange{.total = 200}));
  for (const auto* text : {"", "bytes", "bytes 0-1", "bytes 0-1/*", "bytes -1/2", "bytes 0-/2", "bytes 0-2/2",
                           "items 0-1/2", "bytes 0-99999999999999999999/2"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(S3Answer, ADateIsTheFixedFormOfHttp) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), *parse_time("1994-11-06T08:49:37Z"));
  for (const auto* text :
       {"Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 ovD 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sunday, 06-Nov-94 08:49:37 GMT"})
    EXPECT_FALSE(parse_http_date(text)) << text;
}

TEST(S3Address, HasAHostAndPerhapsAPortAndAPath) {
  EXPECT_EQ(*parse_url("http://Host.example"), (Url{.tls = false, .host = "host.example", .port = 80}));
  EXPECT_EQ(*parse_url("https://[::1]:9000/a%20b"),
            (Url{.tls = true, .host = "[::1]", .port = 9000, .path = "/a b"}));
  EXPECT_EQ(origin(*parse_url("http://host:9000/")), "http://host:9000");
  EXPECT_EQ(authority(*parse_url("https://host:443")), "host");
}

TEST(S3Address, HasNothingElse) {
  for (const auto* text : {"", "host", "ftp://host", "http://", "http://user:secret@host", "http://host:0",
                           "http://host:99999", "http://host/a?b", "http://host/#a", "http://host/%zz",
                           "http://ho st", "http://[::1", "http://-host", "file:///etc/passwd"})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(S3Redirect, IsFollowedToTheSameHostAndThoseBelowIt) {
  const auto may = [](const char* base, const char* target) {
    return may_follow(*parse_url(base), *parse_url(target));
  };
  EXPECT_TRUE(may("http://store:9000", "http://store:9000/other"));
  EXPECT_TRUE(may("https://store.example", "https://bucket.store.example/a"));
  EXPECT_TRUE(may("http://store.example", "https://store.example/a"));
}

TEST(S3Redirect, IsNotFollowedToOthersNorWithLessProtection) {
  const auto may = [](const char* base, const char* target) {
    return may_follow(*parse_url(base), *parse_url(target));
  };
  EXPECT_FALSE(may("https://store.example", "http://store.example"));
  EXPECT_FALSE(may("https://store.example", "https://evil.example"));
  EXPECT_FALSE(may("https://store.example", "https://evilstore.example"));
  EXPECT_FALSE(may("https://store.example", "https://store.example.evil.example"));
  EXPECT_FALSE(may("http://127.0.0.1:9000", "http://127.0.0.1:22"));
  EXPECT_FALSE(may("http://127.0.0.1:9000", "http://169.254.169.254/latest"));
}

TEST(S3Redirect, IsFollowedBetweenAmazonsEndpointsButNotToMachinesOfItsCustomers) {
  const auto base = *parse_url("https://s3.us-east-1.amazonaws.com");
  for (const auto* host :
       {"s3.amazonaws.com", "s3-eu-west-1.amazonaws.com", "bucket.s3.eu-west-1.amazonaws.com",
        "bucket.s3.dualstack.eu-west-1.amazonaws.com"})
    EXPECT_TRUE(may_follow(base, *parse_url(std::string("https://") + host))) << host;
  for (const auto* host :
       {"ec2-1-2-3-4.eu-west-1.compute.amazonaws.com", "s3.evil.elb.amazonaws.com", "amazonaws.com",
        "s3.eu-west-1.amazonaws.com.evil.example", "evil.execute-api.eu-west-1.amazonaws.com"})
    EXPECT_FALSE(may_follow(base, *parse_url(std::string("https://") + host))) << host;
}

TEST(S3Options, ThatCannotWorkAreRefused) {
  const auto refused = [](const S3Options& options) {
    const auto source = open_s3(options);
    return !source && source.error().code() == Code::invalid_argument;
  };
  EXPECT_TRUE(refused({.endpoint = "store:9000"}));
  EXPECT_TRUE(refused({.endpoint = "http://store:9000/path"}));
  EXPECT_TRUE(refused({.region = "Region 1"}));
  EXPECT_TRUE(refused({.key_id = "id without a secret"}));
  EXPECT_TRUE(refused({.key_id = "two\r\nlines", .secret = "s"}));
  EXPECT_TRUE(refused({.key_id = "id", .secret = "s", .session_token = "a\nb"}));
  EXPECT_TRUE(refused({.stall_timeout = Duration(0)}));
  EXPECT_FALSE(refused({}));
}

TEST(S3Names, OfBucketsAndKeysAreCheckedBeforeAnythingIsSent) {
  const auto source = *open_s3({.endpoint = "http://127.0.0.1:1"});
  for (const auto* bucket : {"", ".", "..", "a/b", "a b", "-a", "a..b"})
    EXPECT_EQ(source->look({bucket, "key"}, {}).error().code(), Code::invalid_argument) << bucket;
  EXPECT_EQ(source->look({"bucket", "../key"}, {}).error().code(), Code::invalid_argument);
  const auto in_host = *open_s3({.endpoint = "http://127.0.0.1:1", .path_style = false});
  EXPECT_EQ(in_host->look({"Upper_case", "key"}, {}).error().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace pawl::images::s3

namespace pawl::images {
namespace {

TEST(SourceKeys, AreWhatTheStoreTakesWithoutDotsAsComponents) {
  for (const auto* key : {"a", "images/alpine-3.20_x.tar", "a..b", "..a", "a/.b", "/a", "a/", "a//b", "a b",
                          "a\\b", "\xc3\xa4\xe2\x82\xac/\xf0\x9f\x90\xa7", "a%2e?&=+#", "line\nend"})
    EXPECT_TRUE(check_key(key)) << key;
  EXPECT_TRUE(check_key(std::string(1024, 'a')));
  for (const auto* key : {"", ".", "..", "a/../b", "./a", "a/..", "\xff", "\xc3"}) {
    const auto checked = check_key(key);
    ASSERT_FALSE(checked) << key;
    EXPECT_EQ(checked.error().code(), Code::invalid_argument);
  }
  EXPECT_FALSE(check_key(std::string(1025, 'a')));
  EXPECT_FALSE(check_key(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace pawl::images
