// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random bits, password hashes and digests, by libsodium.

#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::server {

/// 256 random bits as 43 characters of base64url.
std::string random_secret();
/// 64 random bits as 16 hexadecimal digits.
std::string random_id();

/// SHA-256 as hexadecimal digits.
std::string digest(std::string_view text);
/// Compares in constant time.
bool same_text(std::string_view a, std::string_view b);

/// argon2id. Takes tens of milliseconds and 64 MiB, unless cheap. Error: `internal` (no memory).
Result<std::string> hash_password(const std::string& password, bool cheap);
bool verify_password(const std::string& hash, const std::string& password);

}  // namespace pawl::server
