// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Errors as problem details (RFC 9457).

#include "pawl/error.hpp"
#include "pawl/http.hpp"

namespace pawl::server {

/// The HTTP status of a code.
int status_of(Code code) noexcept;

/// "Not Found"; the phrase of a status that the server uses.
std::string_view reason(int status) noexcept;

http::Response to_response(const Error& error);

/// The problem's JSON alone, for use outside of a response, such as the end of an event stream.
std::string to_problem(const Error& error);

}  // namespace pawl::server
