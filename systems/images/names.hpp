// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of images and snapshots, and those derived from them.
///
///     PAWL_CHECK(check_image_id("alpine-3_20"));
///     volume_name("snap", id);      // "snap-alpine-3_20", or with a hash where that is too long

#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::images {

/// Letters, digits, "-" and "_", at most 247 bytes, so that a file can be named after it. Error:
/// `invalid_argument`.
Result<void> check_image_id(std::string_view id);

/// Likewise, at most 127 bytes: what the device mapper allows. Error: `invalid_argument`.
Result<void> check_snapshot_name(std::string_view name);

/// "img_" and the SHA-256 of the bucket and the key: the same object always has the same id.
std::string image_id_of(std::string_view bucket, std::string_view key);

/// "<kind>-<image>", at most 127 bytes: what the device mapper allows. A longer one ends in a hash.
std::string volume_name(std::string_view kind, std::string_view image);

/// SHA-256 as 64 hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace pawl::images
