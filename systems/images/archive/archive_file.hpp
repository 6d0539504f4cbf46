// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file that an archive is in. libarchive reads it from the front to the end in large pieces; headers are
/// looked at out of the same piece where they are in it, so that nothing is read twice.
///
///     ArchiveFile file(descriptor, size);
///     PAWL_TRY(const char* header, file.block(1024));   // 512 bytes, valid until the next call

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "images/archive/descriptor.hpp"
#include "images/background_hash.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// Not for several threads at once.
class ArchiveFile {
 public:
  static constexpr std::size_t kBlock = 512;

  ArchiveFile(Descriptor file, std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }

  /// The block at a position, all of which must be inside the file. Error: `store_io`.
  Result<const char*> block(std::uint64_t position);

  /// The next piece for libarchive: its size, 0 at the end of the file, or -1 and errno. It stays as it is
  /// until the next one is asked for.
  ssize_t next_piece(const void** begin);
  /// Leaves bytes out in front of the next piece; how many. None while the file is hashed.
  std::int64_t skip(std::int64_t bytes);

  /// From now on every piece is hashed. Before the first one.
  void hash();
  /// Reads what is left of the file, and says what the SHA-256 of all of it is. Error: `store_io`.
  Result<std::string> digest();

 private:
  Descriptor file_;
  std::uint64_t bytes_;
  std::string buffer_;      ///< for the next piece
  std::string_view piece_;  ///< the last one
  std::uint64_t piece_begin_ = 0;
  std::uint64_t next_ = 0;  ///< where the next piece begins
  std::array<char, std::size_t{8} * kBlock> window_{};
  std::uint64_t window_begin_ = 0;
  std::size_t window_size_ = 0;
  std::unique_ptr<BackgroundHash> hash_;  ///< where it is hashed
};

}  // namespace pawl::images
