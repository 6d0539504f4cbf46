// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parts of HTTP that Beast does not do: serialised answers, compression, refusals.

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
/// True for text of more than a kilobyte.
bool is_worth_compressing(const http::Response& response);
/// Compresses the body if that is worth it.
void compress(http::Response& response);

http::Response wire_response(const Error& error);
Error slow_request();
Error header_too_large(const HttpLimits& limits);
Error body_too_large(const HttpLimits& limits);
Error malformed_request(std::string_view why);
Error unsupported_method();

}  // namespace pawl::server
