// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The errors of archives, made in one place so that all of them name the entry in the same way.

#include <cstdint>
#include <string>
#include <string_view>

#include "images/archive/archive.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// A name from an archive as people and logs can take it: unprintable bytes escaped, cut where very long.
std::string entry_name(std::string_view path);

/// `what` continues the sentence that begins with the entry's name: "is setuid".
[[nodiscard]] std::unexpected<Error> hostile(Violation violation, std::string_view path,
                                             std::string_view what);

/// How an archive is corrupt: the detail "violation" of the error.
enum class Damage : std::uint8_t { malformed, truncated, compressed, checksum };

/// Something that breaks the format, at a byte of the archive.
[[nodiscard]] std::unexpected<Error> corrupt(std::uint64_t entry, std::uint64_t position,
                                             std::string_view what, Damage damage = Damage::malformed);

}  // namespace pawl::images
