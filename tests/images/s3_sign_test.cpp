// SPDX-License-Identifier: Apache-2.0
// The signer against the examples that Amazon publishes for S3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/names.hpp"
#include "images/source/sigv4.hpp"

namespace pawl::images::s3 {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

std::string signed_with(SignedRequest request, const Credentials& credentials = kExample) {
  sign(request, credentials, "us-east-1", *parse_time("2013-05-24T00:00:00Z"));
  for (const auto& [name, value] : request.headers) {
    if (name == "authorization") return value;
  }
  return "";
}

SignedRequest example(std::string method, std::string path) {
  return {.method = std::move(method), .host = "examplebucket.s3.amazonaws.com", .path = std::move(path)};
}

TEST(S3Signature, OfAnObjectsRangeIsThePublishedOne) {
  auto request = example("GET", "/test.txt");
  request.headers = {{"range", "bytes=0-9"}};
  EXPECT_EQ(signed_with(request),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(S3Signature, OfAnUploadWithACharacterToEncodeIsThePublishedOne) {
  auto request = example("PUT", "/test$file.text");
  request.headers = {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                     {"date", "Fri, 24 May 2013 00:00:00 GMT"}};
  request.payload_hash = sha256_hex("Welcome to Amazon S3.");
  EXPECT_THAT(signed_with(request),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(S3Signature, OfAParameterWithoutAValueIsThePublishedOne) {
  auto request = example("GET", "/");
  request.query = {{"lifecycle", ""}};
  EXPECT_THAT(signed_with(request),
              EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
}

TEST(S3Signature, DoesNotDependOnTheOrderOfParameters) {
  auto request = example("GET", "/");
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_THAT(signed_with(request),
              EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  EXPECT_EQ(request_target(request), "/?max-keys=2&prefix=J");
}

TEST(S3Signature, CoversTheSessionToken) {
  const Credentials with_token{kExample.key_id, kExample.secret, "token"};
  EXPECT_THAT(signed_with(example("GET", "/a"), with_token), HasSubstr(";x-amz-security-token,"));
}

TEST(S3Signature, EncodesEveryByteOfAKeyButTheUnreservedOnesAndSlashes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto encoded = encode(all, true);
  EXPECT_THAT(encoded, HasSubstr("%00%01"));
  EXPECT_THAT(encoded,
              HasSubstr("%20%21%22%23%24%25%26%27%28%29%2A%2B%2C-./0123456789%3A%3B%3C%3D%3E%3F%40ABC"));
  EXPECT_THAT(encoded, HasSubstr("XYZ%5B%5C%5D%5E_%60abc"));
  EXPECT_THAT(encoded, HasSubstr("xyz%7B%7C%7D~%7F%80"));
  EXPECT_THAT(encoded, EndsWith("%FE%FF"));
  EXPECT_EQ(encode("a/b", false), "a%2Fb");
}

TEST(S3Signature, SortsParametersByTheirEncodedNamesAndValues) {
  auto request = example("GET", "/");
  request.query = {{"b", ""}, {"a=", "1"}, {"a", "2"}, {"a", "1"}};
  EXPECT_EQ(request_target(request), "/?a=1&a=2&a%3D=1&b=");
}

TEST(S3Signature, TakesSeveralBlanksInAHeaderForOne) {
  auto request = example("GET", "/");
  request.headers = {{"x-amz-meta-note", "  two   words "}};
  EXPECT_THAT(canonical_request(request), HasSubstr("\nx-amz-meta-note:two words\n"));
}

}  // namespace
}  // namespace pawl::images::s3
