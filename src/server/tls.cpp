// SPDX-License-Identifier: Apache-2.0
#include "server/tls.hpp"

#include <fmt/format.h>

namespace pawl::server {

Result<Tls> load_certificate(const std::string& certificate, const std::string& key, const char* ciphers) {
  namespace ssl = boost::asio::ssl;
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  boost::system::error_code failure;
  made->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1 |
                        ssl::context::single_dh_use,
                    failure);
  if (SSL_CTX_set_cipher_list(made->native_handle(), ciphers) != 1) {
    return fail(Code::invalid_argument,
                fmt::format("this OpenSSL has none of the ciphers with forward secrecy ({})", ciphers));
  }
  if (!failure) made->use_certificate_chain_file(certificate, failure);
  if (failure) {
    return fail(Code::invalid_argument,
                fmt::format("the certificate {} cannot be used: {}", certificate, failure.message()));
  }
  made->use_private_key_file(key, ssl::context::pem, failure);
  if (failure) {
    return fail(Code::invalid_argument,
                fmt::format("the key {} cannot be used with the certificate: {}", key, failure.message()));
  }
  return made;
}

}  // namespace pawl::server
