// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Checks a request's host and origin, so that web pages of other sites cannot use the server.

#include <string_view>

#include "pawl/error.hpp"
#include "pawl/http.hpp"

namespace pawl::server {

/// Whether this host can only be this machine: an address of 127.0.0.0/8 in four plain decimal parts, ::1, or
/// "localhost" in any case. Without port and brackets.
bool is_loopback(std::string_view host);

/// The header Host names this machine. A request of the program itself may have none. Error: `forbidden`.
Result<void> check_local_host(const http::Request& request);

/// No other site sent the request, as far as the browser says so in Sec-Fetch-Site and Origin; programs send
/// neither. Error: `forbidden`.
Result<void> check_same_site(const http::Request& request);

}  // namespace pawl::server
