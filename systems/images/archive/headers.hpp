// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The headers of a tar archive, read strictly. libarchive reads content and attributes; everything that the
/// rules decide on comes from here, because libarchive forgives much: it drops what follows a NUL in a name,
/// takes the last of several names, and lets a link have content or not by guessing.
///
///     HeaderReader headers(file, size);
///     PAWL_TRY(const auto head, headers.next());   // nothing at the end of the archive

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::images {

enum class EntryKind : std::uint8_t {
  regular,
  directory,
  symlink,
  hardlink,
  fifo,
  character_device,
  block_device,
};

/// What all headers of one entry together say.
struct EntryHead {
  EntryKind kind = EntryKind::regular;
  bool sparse = false;
  std::uint32_t mode = 0;   ///< the twelve bits of permissions
  std::string path{};       ///< as the archive has it; no NUL
  std::string link{};       ///< the target of a link; no NUL
  std::uint64_t size = 0;   ///< of the content, holes included
  std::uint64_t begin = 0;  ///< where its first header is
  std::uint64_t end = 0;    ///< where the next entry begins; may be behind the end of the file
};

/// Not for several threads at once. Reads the descriptor by position, so others may read it too.
class HeaderReader {
 public:
  HeaderReader(int file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  /// Does not look at content: the caller checks `end` against the file's size once the limits have passed.
  /// Errors: `archive_corrupt`, `archive_hostile` (bad_size, bad_name, unsupported_entry), `store_io`.
  Result<std::optional<EntryHead>> next();

  /// How many entries were begun.
  std::uint64_t entry() const { return entry_; }

 private:
  struct Extensions;
  static constexpr std::size_t kBlock = 512;

  std::unexpected<Error> broken(std::string_view what) const;
  Result<bool> load_block();
  Result<void> check_sum() const;
  Result<std::uint64_t> stored_size(std::string_view path) const;
  Result<std::string> extension_body(std::string_view what);
  Result<void> read_extension(char type, Extensions& found);
  Result<EntryHead> finish_entry(Extensions found, std::uint64_t begin);
  Result<void> skip_sparse_blocks();
  std::string_view field(std::size_t at, std::size_t size) const { return {block_ + at, size}; }
  std::string text_field(std::size_t at, std::size_t size) const;
  std::string header_name() const;

  int file_;
  std::uint64_t file_bytes_;
  std::uint64_t position_ = 0;  ///< behind the block that is loaded
  std::uint64_t entry_ = 0;
  const char* block_ = nullptr;
  std::array<char, std::size_t{32} * 1024> window_{};
  std::uint64_t window_begin_ = 0;
  std::size_t window_size_ = 0;
};

}  // namespace pawl::images
