// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file that an archive is in, unpacked on the way where it is compressed. libarchive reads it from the
/// front to the end in large pieces; headers are looked at out of the same piece where they are in it, so
/// that nothing is read twice.
///
///     ArchiveFile file(descriptor, size);
///     PAWL_TRY(const auto header, file.block(1024));   // 512 bytes, valid until the next call
///
/// Positions are those of the archive, not of the compressed file.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "images/archive/decompressor.hpp"
#include "images/archive/descriptor.hpp"
#include "images/background_hash.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// Not for several threads at once.
class ArchiveFile {
 public:
  static constexpr std::size_t kBlock = 512;

  ArchiveFile(Descriptor file, std::uint64_t bytes);
  ArchiveFile(const ArchiveFile&) = delete;
  ArchiveFile& operator=(const ArchiveFile&) = delete;

  int descriptor() const { return file_.get(); }
  /// Of the file.
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// How far into the file what is at a position of the archive was found.
  std::uint64_t file_position(std::uint64_t position) const { return unpacker_ ? read_ : position; }
  /// Of the archive, once that is known: from the beginning where it is not compressed, else at its end.
  std::optional<std::uint64_t> bytes() const { return bytes_; }
  bool is_compressed() const { return unpacker_ != nullptr; }

  /// From now on what the file unpacks to is the archive. Before the first piece. An archive of more than
  /// `most_bytes` is hostile. Error: `internal`.
  Result<void> decompress(Compression compression, std::uint64_t most_bytes, std::stop_token stop);

  /// The block at a position; shorter where the archive ends inside it, and empty at its end. In a compressed
  /// archive blocks are asked for in order. Errors: `store_io`; of compressed ones also `archive_corrupt`,
  /// `archive_hostile`, `cancelled`.
  Result<std::string_view> block(std::uint64_t position);

  /// The next piece for libarchive, empty at the end. It stays as it is until the next one is asked for.
  Result<std::string_view> next_piece();
  /// Leaves bytes out in front of the next piece; how many. None while the file is hashed or unpacked.
  std::int64_t skip(std::int64_t bytes);

  /// From now on the file is hashed as it is read. Before the first piece.
  void hash();
  /// Unpacks what is left, so that damage behind the end of the archive is found.
  Result<void> finish();
  /// Reads what is left of the file, and says what the SHA-256 of all of it is. Error: `store_io`.
  Result<std::string> digest();

 private:
  Result<std::string_view> read_file();
  Result<void> unpack_into(std::string& piece);

  Descriptor file_;
  std::uint64_t file_bytes_;
  std::optional<std::uint64_t> bytes_;
  std::uint64_t read_ = 0;   ///< of the file
  std::string read_buffer_;  ///< for what is read of it
  std::string unpacked_;     ///< the last piece of a compressed archive
  std::string ahead_;        ///< what is unpacked and no piece yet
  std::string_view piece_;   ///< the last one
  std::uint64_t piece_begin_ = 0;
  std::uint64_t next_ = 0;  ///< where the next piece begins
  std::array<char, std::size_t{8} * kBlock> window_{};
  std::uint64_t window_begin_ = 0;
  std::size_t window_size_ = 0;
  std::unique_ptr<BackgroundHash> hash_;  ///< where it is hashed
  std::stop_token stop_;
  std::uint64_t most_bytes_ = 0;
  std::unique_ptr<Decompressor> unpacker_;
};

}  // namespace pawl::images
