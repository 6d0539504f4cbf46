// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a server may listen.

#include <cstdint>
#include <string>

#include "pawl/error.hpp"
#include "pawl/server.hpp"

namespace pawl::server {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

/// Everything about the address and the certificate that can be wrong before anything listens. Errors:
/// `invalid_argument`, `unsafe_address`.
Result<Address> check_listening(const ServerOptions& options, bool with_auth);

}  // namespace pawl::server
