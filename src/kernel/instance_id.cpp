// SPDX-License-Identifier: Apache-2.0
#include "pawl/instance_id.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>

#include "pawl/assert.hpp"

namespace pawl {

std::array<std::uint8_t, 16> digest16(std::string_view bytes) {
  // Looking the algorithm up costs more than hashing a key, so each thread keeps what it found.
  struct Hasher {
    EVP_MD* algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    Hasher() = default;
    Hasher(const Hasher&) = delete;
    Hasher& operator=(const Hasher&) = delete;
    ~Hasher() {
      EVP_MD_CTX_free(context);
      EVP_MD_free(algorithm);
    }
  };
  thread_local const Hasher hasher;
  std::array<unsigned char, EVP_MAX_MD_SIZE> full{};
  unsigned int length = 0;
  const bool done = EVP_DigestInit_ex2(hasher.context, hasher.algorithm, nullptr) == 1 &&
                    EVP_DigestUpdate(hasher.context, bytes.data(), bytes.size()) == 1 &&
                    EVP_DigestFinal_ex(hasher.context, full.data(), &length) == 1;
  PAWL_ASSERT(done && length == 32, "SHA-256 is available", length);
  std::array<std::uint8_t, 16> first{};
  std::copy_n(full.begin(), first.size(), first.begin());
  return first;
}

InstanceId instance_id(std::string_view machine, std::string_view key) {
  std::string text;
  text.reserve(machine.size() + 1 + key.size());
  text.append(machine).append(1, '\0').append(key);
  return {digest16(text)};
}

std::string InstanceId::to_string() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const auto byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xfU];
  }
  return text;
}

Result<InstanceId> parse_instance_id(std::string_view text) {
  InstanceId id;
  bool good = text.size() == 2 * id.bytes.size();
  for (std::size_t i = 0; good && i < id.bytes.size(); ++i) {
    const auto* begin = text.data() + 2 * i;
    const auto parsed = std::from_chars(begin, begin + 2, id.bytes[i], 16);
    good = parsed.ec == std::errc{} && parsed.ptr == begin + 2;
  }
  if (!good) {
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is not an instance id: expected 32 hexadecimal digits", text.substr(0, 64)));
  }
  return id;
}

}  // namespace pawl
