// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Compressed bytes, unpacked piece by piece in bounded memory.
///
///     PAWL_TRY(const auto unpacker, open_decompressor(Compression::gzip, next_input));
///     PAWL_TRY(const auto size, unpacker->read(buffer, sizeof buffer));   // 0 at the end

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::images {

enum class Compression : std::uint8_t { gzip, zstd, xz };

/// The next compressed bytes, empty at the end; valid until the next call.
using CompressedInput = std::function<Result<std::string_view>()>;

/// Not for several threads at once.
class Decompressor {
 public:
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  virtual ~Decompressor() = default;

  /// Fills a part of the memory; how much, 0 at the end. Errors: `archive_corrupt`, those of the input.
  virtual Result<std::size_t> read(char* to, std::size_t size) = 0;
};

/// Several compressed parts that follow each other are read as one. Error: `internal`.
Result<std::unique_ptr<Decompressor>> open_decompressor(Compression compression, CompressedInput input);

}  // namespace pawl::images
