// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The TLS context of a certificate.

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "pawl/error.hpp"

namespace pawl::server {

using Tls = std::shared_ptr<boost::asio::ssl::context>;

/// For TLS 1.2: with forward secrecy, a key that is stolen later does not decrypt recorded traffic.
inline constexpr const char* kForwardSecret = "ECDHE+AESGCM:ECDHE+CHACHA20";

/// Both are PEM files. Error: `invalid_argument`, also where this OpenSSL has none of the ciphers: without
/// them it would use its own choice.
Result<Tls> load_certificate(const std::string& certificate, const std::string& key,
                             const char* ciphers = kForwardSecret);

}  // namespace pawl::server
