// SPDX-License-Identifier: Apache-2.0
#include "server/secrets.hpp"

#include <sodium.h>

#include <array>

#include "pawl/assert.hpp"

namespace pawl::server {
namespace {

void need_sodium() {
  static const bool kReady = sodium_init() >= 0;  // once, whichever thread comes first
  PAWL_ASSERT(kReady, "libsodium finds a source of random bits");
}

}  // namespace

std::string random_secret() {
  need_sodium();
  std::array<unsigned char, 32> bits{};
  randombytes_buf(bits.data(), bits.size());
  std::string text(sodium_base64_encoded_len(bits.size(), sodium_base64_VARIANT_URLSAFE_NO_PADDING), '\0');
  sodium_bin2base64(text.data(), text.size(), bits.data(), bits.size(),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  text.pop_back();  // the terminating zero
  return text;
}

std::string random_id() {
  need_sodium();
  std::array<unsigned char, 8> bits{};
  randombytes_buf(bits.data(), bits.size());
  std::string text(bits.size() * 2 + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bits.data(), bits.size());
  text.pop_back();
  return text;
}

std::string digest(std::string_view text) {
  need_sodium();
  std::array<unsigned char, crypto_hash_sha256_BYTES> bits{};
  crypto_hash_sha256(bits.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::string shown(bits.size() * 2 + 1, '\0');
  sodium_bin2hex(shown.data(), shown.size(), bits.data(), bits.size());
  shown.pop_back();
  return shown;
}

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<std::string> hash_password(const std::string& password, bool cheap) {
  need_sodium();
  std::string hash(crypto_pwhash_STRBYTES, '\0');
  const auto work = cheap ? crypto_pwhash_OPSLIMIT_MIN : crypto_pwhash_OPSLIMIT_INTERACTIVE;
  const auto memory = cheap ? crypto_pwhash_MEMLIMIT_MIN : crypto_pwhash_MEMLIMIT_INTERACTIVE;
  if (crypto_pwhash_str(hash.data(), password.data(), password.size(), work, memory) != 0) {
    return fail(Code::internal, "there is not enough memory to hash a password");
  }
  hash.resize(hash.find('\0'));
  return hash;
}

bool verify_password(const std::string& hash, const std::string& password) {
  need_sodium();
  return crypto_pwhash_str_verify(hash.c_str(), password.data(), password.size()) == 0;
}

}  // namespace pawl::server
