// SPDX-License-Identifier: Apache-2.0
#include "server/dashboard.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "pawl/assert.hpp"
#include "server/wire.hpp"

namespace pawl::server {
namespace {

constexpr std::string_view kIndex = "/index.html";
constexpr std::string_view kAssets = "/assets/";  // their names change with their content

// The page loads, runs and requests only what this server serves, and cannot be shown in a frame.
constexpr const char* kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

std::string_view content_type(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

/// A little-endian number; gzip ends with the checksum and the length of the content.
std::uint32_t number_at(std::string_view bytes, std::size_t place) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number |= std::uint32_t{static_cast<unsigned char>(bytes[place + i])} << (8 * i);
  }
  return number;
}

std::string unpack(std::string_view gzip) {
  std::string content(number_at(gzip, gzip.size() - 4), '\0');
  z_stream zip{};
  std::string packed(gzip);
  zip.next_in = reinterpret_cast<Bytef*>(packed.data());
  zip.avail_in = static_cast<uInt>(packed.size());
  zip.next_out = reinterpret_cast<Bytef*>(content.data());
  zip.avail_out = static_cast<uInt>(content.size());
  // 16 more window bits ask zlib for the gzip format.
  const int status = inflateInit2(&zip, 15 + 16);
  PAWL_ASSERT(status == Z_OK, "zlib has memory", status);
  const int done = inflate(&zip, Z_FINISH);
  inflateEnd(&zip);
  PAWL_ASSERT(done == Z_STREAM_END, "an embedded file is whole", done);
  return content;
}

const EmbeddedFile* find_file(std::string_view path) {
  const auto files = embedded_files();
  const auto found = std::ranges::find(files, path, &EmbeddedFile::path);
  return found == files.end() ? nullptr : &*found;
}

bool is_version(std::string_view segment) {
  return segment.size() > 1 && segment[0] == 'v' &&
         std::ranges::all_of(segment.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a path without a file may be an address inside the page.
bool is_place(std::string_view path) {
  const auto first = path.substr(1, path.find('/', 1) - 1);
  if (is_version(first) || first == "metrics" || first == "healthz" || first == "readyz") return false;
  // Absent files at the top, such as /favicon.ico, and old assets are not addresses of the page.
  const bool file = first.size() + 1 == path.size() && first.find('.') != std::string_view::npos;
  return !file && !path.starts_with(kAssets);
}

}  // namespace

std::optional<http::Response> dashboard(const http::Request& request) {
  const auto* file = find_file(request.path);
  if (file == nullptr && is_place(request.path)) file = find_file(kIndex);
  if (file == nullptr) return std::nullopt;
  const auto end = file->gzip.size();
  // Weak, because the same file may be sent compressed or not.
  const auto etag = fmt::format("W/\"{:08x}-{:x}\"", number_at(file->gzip, end - 8), end);
  const bool lasting = file->path.starts_with(kAssets);
  http::Response response{
      .content_type = std::string(content_type(file->path)),
      .headers = {{"ETag", etag},
                  {"Cache-Control", lasting ? "public, max-age=31536000, immutable" : "no-cache"},
                  {"Content-Security-Policy", kPolicy},
                  {"Referrer-Policy", "no-referrer"},
                  {"Vary", "Accept-Encoding"}}};
  if (request.header("If-None-Match") == etag) {
    response.status = 304;
  } else if (accepts_gzip(request.header("Accept-Encoding"))) {
    response.body = file->gzip;
    response.headers.emplace_back("Content-Encoding", "gzip");
  } else {
    response.body = unpack(file->gzip);
  }
  return response;
}

}  // namespace pawl::server
