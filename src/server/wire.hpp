// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the transport needs of HTTP besides Beast's parser: bytes of an answer, compression, refusals.

#include <optional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/server.hpp"

namespace pawl::server {

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::optional<http::Method> to_method(std::string_view name);

/// Status line, headers and body. A stream has no length: its end is the end of the connection.
std::string to_bytes(const http::Response& response, bool keep_alive, bool head, bool secure);

bool accepts_gzip(std::string_view accept_encoding);
/// Texts of more than a kilobyte are.
bool is_worth_compressing(const http::Response& response);
/// Where it is worth it.
void compress(http::Response& response);

http::Response wire_response(const Error& error);
Error slow_request();
Error header_too_large(const HttpLimits& limits);
Error body_too_large(const HttpLimits& limits);
Error malformed_request(std::string_view why);
Error unsupported_method();

}  // namespace pawl::server
