// SPDX-License-Identifier: Apache-2.0
#include "images/archive/headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <system_error>

#include "images/archive/findings.hpp"
#include "images/archive/pax.hpp"

namespace pawl::images {
namespace {

// Offsets and sizes in a header block.
constexpr std::size_t kNameAt = 0, kNameSize = 100;
constexpr std::size_t kModeAt = 100, kModeSize = 8;
constexpr std::size_t kSizeAt = 124, kSizeSize = 12;
constexpr std::size_t kSumAt = 148, kSumSize = 8;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kLinkAt = 157, kLinkSize = 100;
constexpr std::size_t kMagicAt = 257;
constexpr std::size_t kPrefixAt = 345, kPrefixSize = 155;
// Of old GNU sparse files.
constexpr std::size_t kMoreAt = 482, kRealSizeAt = 483, kMoreInExtensionAt = 504;

// A name has 4 KiB at most, extended attributes of one file 64 KiB on common file systems.
constexpr std::uint64_t kLargestExtension = std::uint64_t{1} << 20;
constexpr int kMostExtensions = 8;
// Pieces of a sparse file between holes, all of which libarchive keeps in memory: a hole after each 4 KiB of
// a gibibyte.
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 17;
constexpr std::uint64_t kPiecesInBlock = 21;
// Far above any limit, and low enough that no sum of positions overflows.
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 60;

std::uint64_t whole_blocks(std::uint64_t bytes) { return (bytes + 511) / 512 * 512; }

/// A number of a header: octal digits, or big-endian behind a byte of 0x80. Nothing where it is neither,
/// negative or above 2^63 - 1.
std::optional<std::uint64_t> header_number(std::string_view field) {
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
    if (static_cast<unsigned char>(field[0]) != 0x80U) return {};
    for (const char c : field.substr(1)) {
      if (number > (std::uint64_t{INT64_MAX} >> 8U)) return {};
      number = number << 8U | static_cast<unsigned char>(c);
    }
    return number;
  }
  auto at = field.begin();
  while (at != field.end() && *at == ' ') ++at;
  for (; at != field.end() && *at >= '0' && *at <= '7'; ++at) {
    number = number << 3U | static_cast<std::uint64_t>(*at - '0');
  }
  if (std::any_of(at, field.end(), [](char c) { return c != ' ' && c != 0; })) return {};
  return number;  // twelve digits have 36 bits
}

Result<void> too_many_pieces(std::string_view path) {
  return hostile(Violation::bad_size, path,
                 fmt::format("is sparse and has more than {} pieces between holes", kMostPieces));
}

}  // namespace

/// What the headers in front of an entry's own header say.
struct HeaderReader::Extensions {
  PaxFacts pax{};
  bool has_pax = false;
  std::optional<std::string> long_name{};
  std::optional<std::string> long_link{};
  int count = 0;
};

std::unexpected<Error> HeaderReader::broken(std::string_view what) const {
  return corrupt(entry_, position_ - kBlock, what);
}

/// Loads the next block; false at the end of the file.
Result<bool> HeaderReader::load_block() {
  PAWL_TRY(const auto bytes, file_.block(position_));
  if (bytes.empty()) return false;
  if (bytes.size() < kBlock) {
    return corrupt(entry_, position_, "the archive breaks off inside a header", Damage::truncated);
  }
  block_ = bytes.data();
  position_ += kBlock;
  return true;
}

Result<void> HeaderReader::check_sum() const {
  const auto stated = header_number(field(kSumAt, kSumSize));
  const auto bytes = field(0, kBlock);
  const auto spaces = field(kSumAt, kSumSize);
  const auto add = [](std::int64_t sum, char c) { return sum + static_cast<unsigned char>(c); };
  const auto sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{kSumSize * ' '}, add) -
                   std::accumulate(spaces.begin(), spaces.end(), std::int64_t{0}, add);
  if (stated && static_cast<std::int64_t>(*stated) == sum) return {};
  // Some old programs summed signed bytes.
  const auto is_negative = [](char c) { return static_cast<signed char>(c) < 0; };
  const auto negatives =
      std::ranges::count_if(bytes, is_negative) - std::ranges::count_if(spaces, is_negative);
  if (stated && static_cast<std::int64_t>(*stated) == sum - 256 * negatives) return {};
  return broken(position_ == kBlock ? "this is no tar archive: its first header has a wrong checksum"
                                    : "the header has a wrong checksum");
}

std::string HeaderReader::text_field(std::size_t at, std::size_t size) const {
  const auto whole = field(at, size);
  return std::string(whole.substr(0, whole.find('\0')));
}

std::string HeaderReader::header_name() const {
  auto name = text_field(kNameAt, kNameSize);
  // GNU's own format has times where ustar has the prefix; its magic differs in the byte behind "ustar".
  if (!field(kMagicAt, 5).starts_with("ustar") || field(kMagicAt, 8) == std::string_view("ustar  \0", 8)) {
    return name;
  }
  auto prefix = text_field(kPrefixAt, kPrefixSize);
  if (prefix.empty()) return name;
  return prefix + (prefix.ends_with('/') ? "" : "/") + name;
}

Result<std::uint64_t> HeaderReader::stored_size(std::string_view path) const {
  const auto size = header_number(field(kSizeAt, kSizeSize));
  if (size && *size <= kLargestSize) return *size;
  return hostile(Violation::bad_size, path,
                 "has a size that is negative, overflows, or is no number; a size is 0 to 2^60");
}

Result<std::string> HeaderReader::extension_body(std::string_view what) {
  const auto path = header_name();
  PAWL_TRY(const auto size, stored_size(path));
  if (size > kLargestExtension) {
    return hostile(Violation::bad_size, path,
                   fmt::format("has a {} of {} bytes; it has {} at most", what, size, kLargestExtension));
  }
  std::string body;
  body.reserve(size);
  while (body.size() < size) {
    PAWL_TRY(const bool loaded, load_block());
    if (!loaded) {
      return corrupt(entry_, position_, fmt::format("the archive breaks off inside a {}", what),
                     Damage::truncated);
    }
    body.append(block_, std::min<std::uint64_t>(kBlock, size - body.size()));
  }
  return body;
}

Result<void> HeaderReader::read_extension(char type, Extensions& found) {
  if (++found.count > kMostExtensions) {
    return broken(fmt::format("more than {} headers precede one entry", kMostExtensions));
  }
  if (type == 'L' || type == 'K') {
    auto& name = type == 'L' ? found.long_name : found.long_link;
    if (name) return broken("two headers give a long name for one entry");
    PAWL_TRY(auto body, extension_body("long name"));
    body.resize(body.find_last_not_of('\0') + 1);
    if (body.contains('\0')) return hostile(Violation::bad_name, body, "has a NUL in its name");
    name = std::move(body);
    return {};
  }
  if (type == 'x' && std::exchange(found.has_pax, true)) return broken("an entry has two pax headers");
  PAWL_TRY(const auto body, extension_body("pax header"));
  PaxFacts global;
  auto& facts = type == 'x' ? found.pax : global;
  if (const auto problem = read_pax(body, facts)) {
    if (!problem->violation) return broken(problem->what);
    return hostile(*problem->violation, facts.path.value_or("(pax header)"), problem->what);
  }
  // A comment for all entries is common; a name or size for all of them makes no sense, and readers differ.
  if (global.path || global.link || global.size || global.sparse || global.sparse_name) {
    return hostile(Violation::unsupported_entry, global.path.value_or("(pax header)"),
                   "is named or sized by a global pax header");
  }
  return {};
}

/// Old GNU sparse files have more of their map in blocks behind the header.
Result<void> HeaderReader::skip_sparse_blocks(std::string_view path) {
  bool more = block_[kMoreAt] != 0;
  for (std::uint64_t pieces = 0; more; pieces += kPiecesInBlock) {
    if (pieces > kMostPieces) return too_many_pieces(path);
    PAWL_TRY(const bool loaded, load_block());
    if (!loaded)
      return corrupt(entry_, position_, "the archive breaks off inside the map of a sparse file",
                     Damage::truncated);
    more = block_[kMoreInExtensionAt] != 0;
  }
  return {};
}

/// The content begins with the number of pieces.
Result<void> HeaderReader::check_sparse_map(std::string_view path) {
  PAWL_TRY(const auto bytes, file_.block(position_));
  if (bytes.size() < kBlock) return {};  // the caller sees that the archive breaks off
  std::uint64_t pieces = 0;
  const auto* end = bytes.data() + bytes.size();
  const auto read = std::from_chars(bytes.data(), end, pieces);
  if (read.ec != std::errc{} || read.ptr == end || *read.ptr != '\n') {
    return hostile(Violation::bad_size, path, "is sparse, but its content begins with no number of pieces");
  }
  return pieces > kMostPieces ? too_many_pieces(path) : Result<void>();
}

Result<EntryHead> HeaderReader::finish_entry(Extensions found, std::uint64_t begin) {
  EntryHead head{.begin = begin};
  auto& pax = found.pax;
  head.path = header_name();
  if (found.long_name) head.path = *std::move(found.long_name);
  if (pax.path) head.path = *std::move(pax.path);
  if (pax.sparse_name) head.path = *std::move(pax.sparse_name);
  head.link = text_field(kLinkAt, kLinkSize);
  if (found.long_link) head.link = *std::move(found.long_link);
  if (pax.link) head.link = *std::move(pax.link);
  PAWL_TRY(auto stored, stored_size(head.path));
  if (pax.size) stored = *pax.size;
  if (stored > kLargestSize || pax.real_size.value_or(0) > kLargestSize) {
    return hostile(Violation::bad_size, head.path, "has a size that overflows; a size is 0 to 2^60");
  }
  const auto mode = header_number(field(kModeAt, kModeSize));
  if (!mode) return broken("the header has a mode that is no octal number");
  head.mode = static_cast<std::uint32_t>(*mode & 07777U);

  const char type = block_[kTypeAt];
  constexpr std::string_view kTypes("\0007S0123456", 10);
  constexpr std::array kKinds = {
      EntryKind::regular,   EntryKind::regular, EntryKind::regular,          EntryKind::regular,
      EntryKind::hardlink,  EntryKind::symlink, EntryKind::character_device, EntryKind::block_device,
      EntryKind::directory, EntryKind::fifo};
  const auto at = kTypes.find(type);
  if (at == std::string_view::npos) {
    return hostile(Violation::unsupported_entry, head.path,
                   fmt::format("is of type \"{}\"; files, directories, links, fifos and devices are read",
                               entry_name(std::string_view(&type, 1))));
  }
  head.kind = kKinds[at];
  // The oldest tar archives have no other mark of a directory.
  if (head.kind == EntryKind::regular && type != 'S' && head.path.ends_with('/')) {
    head.kind = EntryKind::directory;
  }
  if (head.kind != EntryKind::regular && (stored != 0 || pax.sparse)) {
    return hostile(Violation::bad_size, head.path, "has a size, but is no regular file");
  }
  head.sparse = pax.sparse || type == 'S';
  head.has_acl = pax.has_acl;
  head.size = stored;
  if (type == 'S') {
    const auto real_size = header_number(field(kRealSizeAt, kSizeSize));
    if (!real_size || *real_size > kLargestSize || pax.sparse) {
      return hostile(Violation::bad_size, head.path, "is sparse and has no size from 0 to 2^60");
    }
    head.size = *real_size;
    PAWL_CHECK(skip_sparse_blocks(head.path));
  } else if (pax.sparse) {
    if (!pax.real_size) return hostile(Violation::bad_size, head.path, "is sparse and has no size");
    head.size = *pax.real_size;
    if (pax.map_in_content) PAWL_CHECK(check_sparse_map(head.path));
  }
  head.end = position_ + whole_blocks(stored);
  return head;
}

Result<std::optional<EntryHead>> HeaderReader::next() {
  const auto begin = position_;
  Extensions found;
  ++entry_;
  while (true) {
    PAWL_TRY(const bool loaded, load_block());
    const bool empty = loaded && std::ranges::all_of(field(0, kBlock), [](char c) { return c == 0; });
    if (!loaded || empty) {
      if (found.count != 0) {
        return corrupt(entry_, position_, "the archive ends between the headers of one entry",
                       Damage::truncated);
      }
      --entry_;
      return std::nullopt;
    }
    PAWL_CHECK(check_sum());
    const char type = block_[kTypeAt];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
      PAWL_CHECK(read_extension(type, found));
      continue;
    }
    PAWL_TRY(auto head, finish_entry(std::move(found), begin));
    position_ = head.end;
    return head;
  }
}

}  // namespace pawl::images
