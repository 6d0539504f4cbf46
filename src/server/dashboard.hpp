// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The dashboard: files of web/dist, which are part of the program.

#include <optional>
#include <span>
#include <string_view>

#include "pawl/http.hpp"

namespace pawl::server {

/// A file as it is embedded. A value that lives as long as the program.
struct EmbeddedFile {
  std::string_view path;  // "/index.html"
  std::string_view gzip;  // its content, compressed
};

/// Every file of web/dist; cmake/dashboard.cmake writes the definition.
std::span<const EmbeddedFile> embedded_files();

/// What the dashboard has at this path: a file, or its page for addresses that only the page itself knows.
/// Nothing for what belongs to the API.
std::optional<http::Response> dashboard(const http::Request& request);

}  // namespace pawl::server
