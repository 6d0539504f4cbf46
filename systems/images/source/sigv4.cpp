// SPDX-License-Identifier: Apache-2.0
#include "images/source/sigv4.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "images/names.hpp"
#include "pawl/assert.hpp"

namespace pawl::images::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  PAWL_ASSERT(made != nullptr, "OpenSSL has HMAC with SHA-256");
  return {digest.begin(), digest.begin() + size};
}

/// Sorted by the encoded name, then by the encoded value, as the signature wants it.
std::string encoded_query(const Pairs& query) {
  std::vector<std::string> parts;
  parts.reserve(query.size());
  for (const auto& [name, value] : query) parts.push_back(encode(name, false) + "=" + encode(value, false));
  std::ranges::sort(parts, {}, [](const std::string& part) {
    const auto equals = part.find('=');  // the first one: all others are encoded
    return std::pair(part.substr(0, equals), part.substr(equals + 1));
  });
  return fmt::format("{}", fmt::join(parts, "&"));
}

/// Blanks around a value do not count, and several in it count as one.
std::string trimmed(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == ' ' && (result.empty() || result.back() == ' ')) continue;
    result += c;
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

Pairs signed_headers(const SignedRequest& request) {
  Pairs headers = request.headers;
  headers.emplace_back("host", request.host);
  std::ranges::sort(headers);
  return headers;
}

std::string names_of(const Pairs& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names.append(names.empty() ? "" : ";").append(name);
  return names;
}

std::string hash_of_body(const SignedRequest& request) {
  return request.payload_hash.empty() ? sha256_hex("") : request.payload_hash;
}

}  // namespace

std::string encode(std::string_view bytes, bool keep_slash) {
  std::string result;
  for (const char c : bytes) {
    if (is_unreserved(c) || (c == '/' && keep_slash))
      result += c;
    else
      fmt::format_to(std::back_inserter(result), "%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string request_target(const SignedRequest& request) {
  auto target = encode(request.path, true);
  if (!request.query.empty()) target.append("?").append(encoded_query(request.query));
  return target;
}

std::string canonical_request(const SignedRequest& request) {
  const auto headers = signed_headers(request);
  std::string lines;
  for (const auto& [name, value] : headers)
    fmt::format_to(std::back_inserter(lines), "{}:{}\n", name, trimmed(value));
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, encode(request.path, true),
                     encoded_query(request.query), lines, names_of(headers), hash_of_body(request));
}

void sign(SignedRequest& request, const Credentials& credentials, std::string_view region, Time now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto stamp =
      fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
  const auto day = stamp.substr(0, 8);
  request.headers.emplace_back("x-amz-date", stamp);
  request.headers.emplace_back("x-amz-content-sha256", hash_of_body(request));
  if (!credentials.session_token.empty())
    request.headers.emplace_back("x-amz-security-token", credentials.session_token);

  const auto scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const auto text =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, stamp, scope, sha256_hex(canonical_request(request)));
  auto key = hmac("AWS4" + credentials.secret, day);
  for (const std::string_view part : {region, std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac(key, part);
  const auto signature = hmac(key, text);
  request.headers.emplace_back(
      "authorization",
      fmt::format(
          "{} Credential={}/{},SignedHeaders={},Signature={:02x}", kAlgorithm, credentials.key_id, scope,
          names_of(signed_headers(request)),
          fmt::join(reinterpret_cast<const unsigned char*>(signature.data()),
                    reinterpret_cast<const unsigned char*>(signature.data()) + signature.size(), "")));
}

}  // namespace pawl::images::s3
