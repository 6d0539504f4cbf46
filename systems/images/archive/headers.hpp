// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The headers of a tar archive, read strictly. libarchive reads content and attributes; everything that the
/// rules decide on comes from here, because libarchive forgives much: it drops what follows a NUL in a name,
/// takes the last of several names, and lets a link have content or not by guessing.
///
///     HeaderReader headers(file);
///     PAWL_TRY(const auto head, headers.next());   // nothing at the end of the archive

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "images/archive/archive_file.hpp"
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
  bool has_acl = false;     ///< an access control list, of whatever kind
  std::uint32_t mode = 0;   ///< the twelve bits of permissions
  std::string path{};       ///< as the archive has it; no NUL
  std::string link{};       ///< the target of a link; no NUL
  std::uint64_t size = 0;   ///< of the content, holes included
  std::uint64_t begin = 0;  ///< where its first header is
  std::uint64_t end = 0;    ///< where the next entry begins; may be behind the end of the file
};

/// Not for several threads at once. `file` must outlive it.
class HeaderReader {
 public:
  explicit HeaderReader(ArchiveFile& file) : file_(file) {}

  /// Does not look at content: the caller checks `end` against the archive's size once the limits have
  /// passed. Errors: `archive_corrupt`, `archive_hostile` (bad_size, bad_name, unsupported_entry), those of
  /// the file.
  Result<std::optional<EntryHead>> next();

  /// How many entries were begun.
  std::uint64_t entry() const { return entry_; }

 private:
  struct Extensions;
  static constexpr auto kBlock = ArchiveFile::kBlock;

  std::unexpected<Error> broken(std::string_view what) const;
  Result<bool> load_block();
  Result<void> check_sum() const;
  Result<std::uint64_t> stored_size(std::string_view path) const;
  Result<std::string> extension_body(std::string_view what);
  Result<void> read_extension(char type, Extensions& found);
  Result<EntryHead> finish_entry(Extensions found, std::uint64_t begin);
  Result<void> skip_sparse_blocks(std::string_view path);
  Result<void> check_sparse_map(std::string_view path);
  std::string_view field(std::size_t at, std::size_t size) const { return {block_ + at, size}; }
  std::string text_field(std::size_t at, std::size_t size) const;
  std::string header_name() const;

  ArchiveFile& file_;
  std::uint64_t position_ = 0;  ///< behind the block that is loaded
  std::uint64_t entry_ = 0;
  const char* block_ = nullptr;
};

}  // namespace pawl::images
