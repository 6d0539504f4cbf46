// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Signs requests to S3 (AWS Signature Version 4). Pure: no clock and no network.
///
///     SignedRequest request{.method = "GET", .host = "s3.example.org", .path = "/images/alpine.tar"};
///     sign(request, credentials, "us-east-1", now);
///     request.headers;                    // with "authorization" among them
///     request_target(request);            // "/images/alpine.tar", encoded as it was signed

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/time.hpp"

namespace pawl::images::s3 {

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct SignedRequest {
  std::string method;
  std::string host;          ///< as in the header: with the port, unless it is the scheme's own
  std::string path;          ///< bytes that are not encoded yet
  Pairs query{};             ///< not encoded yet, in any order
  Pairs headers{};           ///< names in lower case; all of them are signed
  std::string payload_hash;  ///< SHA-256 of the body in hexadecimal; empty: of no body
};

/// Every byte as %XX but letters, digits, "-", "_", "." and "~"; "/" stays where `keep_slash` is set.
std::string encode(std::string_view bytes, bool keep_slash);

/// The path and the query as they go over the wire.
std::string request_target(const SignedRequest& request);

/// What is hashed and signed; exposed for tests.
std::string canonical_request(const SignedRequest& request);

/// Adds "x-amz-date", "x-amz-content-sha256", "x-amz-security-token" where there is one, and "authorization".
void sign(SignedRequest& request, const Credentials& credentials, std::string_view region, Time now);

}  // namespace pawl::images::s3
