// SPDX-License-Identifier: Apache-2.0
#include "images/names.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "pawl/assert.hpp"

namespace pawl::images {
namespace {

constexpr std::size_t kLongestId = 247;
constexpr std::size_t kLongestName = 127;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

Result<void> check_image_id(std::string_view id) {
  if (!id.empty() && id.size() <= kLongestId && std::ranges::all_of(id, is_plain)) return {};
  return fail(Code::invalid_argument,
              fmt::format("image id \"{}\": it has 1 to {} letters, digits, \"-\" and \"_\"",
                          id.substr(0, 2 * kLongestId), kLongestId));
}

Result<void> check_snapshot_name(std::string_view name) {
  if (!name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_plain)) return {};
  return fail(Code::invalid_argument,
              fmt::format("snapshot name \"{}\": it has 1 to {} letters, digits, \"-\" and \"_\"",
                          name.substr(0, 2 * kLongestName), kLongestName));
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  PAWL_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
              "OpenSSL has SHA-256");
  return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + size, ""));
}

std::string image_id_of(std::string_view bucket, std::string_view key) {
  return "img_" + sha256_hex(fmt::format("{}:{}", bucket, key));
}

std::string volume_name(std::string_view kind, std::string_view image) {
  auto name = fmt::format("{}-{}", kind, image);
  if (name.size() <= kLongestName) return name;
  const auto hash = sha256_hex(image).substr(0, 32);
  name.resize(kLongestName - 1 - hash.size());
  return fmt::format("{}-{}", name, hash);
}

}  // namespace pawl::images
