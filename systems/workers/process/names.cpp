// SPDX-License-Identifier: Apache-2.0
#include "workers/process/names.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <charconv>

#include "pawl/assert.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kLongestId = 1024;
constexpr std::size_t kLongestName = 200;  ///< a file name has 255 bytes; suffixes may be added

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

std::string hash(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  PAWL_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
              "OpenSSL has SHA-256");
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest.at(i));
  return hex;
}

}  // namespace

std::string escape_id(std::string_view id) {
  std::string text;
  for (const char c : id) {
    if (is_plain(c) && !(c == '.' && text.empty())) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

std::optional<std::string> unescape_id(std::string_view text) {
  std::string id;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      id += text[i];
      continue;
    }
    unsigned value = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) return std::nullopt;
    id += static_cast<char>(value);
    i += 2;
  }
  // One text per id: refuse other spellings of the same bytes.
  if (id.empty() || escape_id(id) != text) return std::nullopt;
  return id;
}

Result<std::string> directory_name(std::string_view id) {
  if (id.empty() || id.size() > kLongestId) {
    return fail(Code::invalid_argument,
                fmt::format("the id of a worker has 1 to {} bytes; this one has {}", kLongestId, id.size()));
  }
  auto text = escape_id(id);
  if (text.size() <= kLongestName) return text;
  return "+" + hash(id);
}

bool is_hashed(std::string_view directory_name) { return directory_name.starts_with('+'); }

}  // namespace pawl::workers
