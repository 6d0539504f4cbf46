// SPDX-License-Identifier: Apache-2.0
#include "images/archive/reader.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <compare>

#include "images/archive/findings.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

constexpr std::uint64_t kProgressEntries = 100;

struct Magic {
  std::string_view bytes;
  std::string_view name;
  std::optional<Compression> compression{};  ///< where it is read
};
constexpr std::array kCompressed = {
    Magic{"\x1f\x8b", "gzip", Compression::gzip},
    Magic{"\x28\xb5\x2f\xfd", "zstd", Compression::zstd},
    Magic{"\xfd"
          "7zXZ",
          "xz", Compression::xz},
    Magic{"BZh", "bzip2"},
    Magic{"\x04\x22\x4d\x18", "lz4"},
    Magic{"LZIP", "lzip"},
    Magic{"\x5d\0\0"
          "\0",
          "lzma"},
    Magic{"PK\x03\x04", "zip"},
    Magic{"\x1f\x9d", "compress"},
};

std::unexpected<Error> unreadable(std::string_view path, int number) {
  return fail(Code::store_io, fmt::format("the archive \"{}\" cannot be read: {}", path, errno_text(number)));
}

/// One entry of a list as the kernel has it in the attributes "system.posix_acl_…": all numbers are
/// little-endian.
struct KernelAclEntry {
  std::uint16_t tag = 0;
  std::uint16_t permissions = 0;
  std::uint32_t id = 0;
  auto operator<=>(const KernelAclEntry&) const = default;
};

std::optional<std::uint16_t> kernel_acl_tag(int tag) {
  switch (tag) {
    case ARCHIVE_ENTRY_ACL_USER_OBJ:
      return 0x01;
    case ARCHIVE_ENTRY_ACL_USER:
      return 0x02;
    case ARCHIVE_ENTRY_ACL_GROUP_OBJ:
      return 0x04;
    case ARCHIVE_ENTRY_ACL_GROUP:
      return 0x08;
    case ARCHIVE_ENTRY_ACL_MASK:
      return 0x10;
    case ARCHIVE_ENTRY_ACL_OTHER:
      return 0x20;
    default:
      return {};
  }
}

/// A list of the entry in the kernel's form; empty if there is none, nullopt if it cannot be kept: it
/// has users or groups by name, which have no meaning here.
std::optional<std::string> kernel_acl(archive_entry* entry, int list) {
  constexpr std::uint32_t kNobody = UINT32_MAX;
  std::vector<KernelAclEntry> found;
  if (archive_entry_acl_reset(entry, list) == 0) return "";
  int type = 0;
  int permissions = 0;
  int tag = 0;
  int id = 0;
  const char* name_of = nullptr;
  while (archive_entry_acl_next(entry, list, &type, &permissions, &tag, &id, &name_of) == ARCHIVE_OK) {
    const auto known = kernel_acl_tag(tag);
    const bool named = tag == ARCHIVE_ENTRY_ACL_USER || tag == ARCHIVE_ENTRY_ACL_GROUP;
    if (!known || (named && id < 0)) return {};
    found.push_back({.tag = *known,
                     .permissions = static_cast<std::uint16_t>(static_cast<unsigned int>(permissions) & 7U),
                     .id = named ? static_cast<std::uint32_t>(id) : kNobody});
  }
  std::ranges::sort(found);
  std::string value("\x02\0\0\0", 4);  // the format's version
  const auto put = [&value](std::uint32_t number, int bytes) {
    for (; bytes > 0; --bytes, number >>= 8U) value += static_cast<char>(number & 0xffU);
  };
  for (const auto& one : found) {
    put(one.tag, 2);
    put(one.permissions, 2);
    put(one.id, 4);
  }
  return value;
}

}  // namespace

void ArchiveReader::Closer::operator()(archive* handle) const noexcept { archive_read_free(handle); }

ArchiveReader::ArchiveReader(Descriptor file, std::uint64_t bytes, const ArchiveOptions& options)
    : file_(std::move(file), bytes),
      options_(options),
      headers_(file_),
      rules_(options.limits, options.policy) {
  if (!options.sha256.empty()) file_.hash();
}

Result<std::unique_ptr<ArchiveReader>> ArchiveReader::open(const std::string& path,
                                                           const ArchiveOptions& options) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) return unreadable(path, EINVAL);
  std::unique_ptr<ArchiveReader> reader(
      new ArchiveReader(std::move(file), static_cast<std::uint64_t>(status.st_size), options));
  PAWL_CHECK(reader->check_magic());
  PAWL_CHECK(reader->start());
  return reader;
}

Result<void> ArchiveReader::check_magic() {
  std::array<char, 8> begin{};
  const auto got = ::pread(file_.descriptor(), begin.data(), begin.size(), 0);
  if (got < 0) return unreadable("", errno);
  if (got == 0)
    return corrupt(0, 0, "the archive is empty; a tar archive has 1024 bytes at least", Damage::truncated);
  const std::string_view bytes(begin.data(), static_cast<std::size_t>(got));
  const auto compressed =
      std::ranges::find_if(kCompressed, [&](const Magic& magic) { return bytes.starts_with(magic.bytes); });
  if (compressed == kCompressed.end()) return {};
  // A tar archive may begin with a name of these letters; its checksum tells.
  HeaderReader plain(file_);
  const auto first = plain.next();
  if (first || first.error().code() != Code::archive_corrupt) return {};
  if (compressed->compression) {
    return file_.decompress(*compressed->compression, options_.limits.archive_bytes, options_.stop);
  }
  return fail(Code::archive_corrupt,
              fmt::format("the archive is compressed with {}; what is read are plain tar archives, and those "
                          "compressed with gzip, zstd or xz",
                          compressed->name),
              {{"violation", std::string(enum_name(Damage::compressed))},
               {"compression", std::string(compressed->name)}});
}

Result<void> ArchiveReader::start() {
  handle_.reset(archive_read_new());
  if (!handle_ || archive_read_support_format_tar(handle_.get()) != ARCHIVE_OK ||
      archive_read_set_read_callback(handle_.get(), read_more) != ARCHIVE_OK ||
      archive_read_set_skip_callback(handle_.get(), skip_more) != ARCHIVE_OK ||
      archive_read_set_callback_data(handle_.get(), this) != ARCHIVE_OK) {
    return fail(Code::internal, "libarchive cannot be set up for tar archives");
  }
  return {};
}

ssize_t ArchiveReader::read_more(archive* handle, void* self, const void** buffer) {
  auto& reader = *static_cast<ArchiveReader*>(self);
  const auto piece = reader.file_.next_piece();
  if (!piece) {
    reader.read_failure_ = piece.error();
    archive_set_error(handle, EIO, "the archive cannot be read");
    return -1;
  }
  *buffer = piece->data();
  return static_cast<ssize_t>(piece->size());
}

std::int64_t ArchiveReader::skip_more(archive*, void* self, std::int64_t request) {
  return static_cast<ArchiveReader*>(self)->file_.skip(request);
}

std::unexpected<Error> ArchiveReader::broken(std::string_view what, Damage damage) const {
  if (read_failure_) return fail(*read_failure_);
  if (file_.bytes() && head_.end > *file_.bytes()) damage = Damage::truncated;
  return corrupt(headers_.entry(), head_.begin, fmt::format("\"{}\": {}", entry_name(head_.path), what),
                 damage);
}

Result<void> ArchiveReader::check_digest() {
  if (options_.sha256.empty()) return {};
  PAWL_TRY(const auto found, file_.digest());
  if (found == options_.sha256) return {};
  return corrupt(headers_.entry(), file_.file_bytes(),
                 fmt::format("its SHA-256 is {} where {} was downloaded; it was changed meanwhile", found,
                             options_.sha256),
                 Damage::checksum);
}

Result<void> ArchiveReader::check_stop() const {
  if (!options_.stop.stop_requested()) return {};
  return fail(Code::cancelled, fmt::format("reading the archive was stopped at entry {}", headers_.entry()));
}

Result<std::optional<Admitted>> ArchiveReader::next() {
  PAWL_CHECK(check_stop());
  // What a compressed file has next is only known once the content in front of it was unpacked.
  if (entry_ != nullptr && file_.is_compressed() && archive_read_data_skip(handle_.get()) != ARCHIVE_OK) {
    return broken(archive_error_string(handle_.get()));
  }
  PAWL_TRY(auto head, headers_.next());
  const auto count = rules_.entries();
  if (options_.progress && (!head || (count % kProgressEntries == 0 && count != 0))) {
    const auto all = file_.file_bytes();
    options_.progress(head ? file_.file_position(head->begin) : all, all, count);
  }
  if (!head) {
    PAWL_CHECK(rules_.finish());
    PAWL_CHECK(file_.finish());
    return std::nullopt;
  }
  head_ = *std::move(head);
  PAWL_TRY(auto entry, rules_.admit(head_));
  if (const auto bytes = file_.bytes(); bytes && head_.end > *bytes) {
    return broken(fmt::format(
        "the archive breaks off inside it: the entry ends at byte {}, the archive at {}", head_.end, *bytes));
  }
  PAWL_CHECK(read_attributes(head_));
  delivered_ = 0;
  return entry;
}

/// Lets libarchive read the same header, and makes sure that it is the same.
Result<void> ArchiveReader::read_attributes(const EntryHead& head) {
  if (entry_ == nullptr && archive_read_open1(handle_.get()) != ARCHIVE_OK) {
    return broken(archive_error_string(handle_.get()));
  }
  const auto read = archive_read_next_header(handle_.get(), &entry_);
  if (read != ARCHIVE_OK && read != ARCHIVE_WARN) {
    const auto* text = read == ARCHIVE_EOF ? nullptr : archive_error_string(handle_.get());
    return broken(text != nullptr ? text : "the archive ends in front of it");
  }
  const auto begin = archive_read_header_position(handle_.get());
  const auto size = archive_entry_size(entry_);
  if (begin != static_cast<std::int64_t>(head.begin) || size != static_cast<std::int64_t>(head.size)) {
    return broken(
        fmt::format("its headers contradict each other: it begins at {} and has {} bytes, or begins at "
                    "{} and has {}",
                    head.begin, head.size, begin, size));
  }
  const auto uid = archive_entry_uid(entry_);
  const auto gid = archive_entry_gid(entry_);
  // The highest number means "leave the owner as it is" to the kernel.
  if (uid < 0 || gid < 0 || uid >= UINT32_MAX || gid >= UINT32_MAX) {
    return broken(fmt::format("its owner {}:{} is not within 0 to 2^32 - 2", uid, gid));
  }
  attributes_.uid = static_cast<uid_t>(uid);
  attributes_.gid = static_cast<gid_t>(gid);
  attributes_.mtime = {.tv_sec = archive_entry_mtime(entry_),
                       .tv_nsec = std::clamp(archive_entry_mtime_nsec(entry_), 0L, 999'999'999L)};
  attributes_.device = archive_entry_rdev(entry_);
  if (head.has_acl) {
    read_acl();
  } else {
    attributes_.acl = {};
  }
  read_extended();
  return {};
}

void ArchiveReader::read_extended() {
  attributes_.extended.clear();
  const char* name_of = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  if (archive_entry_xattr_reset(entry_) == 0) return;
  while (archive_entry_xattr_next(entry_, &name_of, &value, &size) == ARCHIVE_OK) {
    if (name_of == nullptr) continue;
    const std::string_view key(name_of);
    std::string content(static_cast<const char*>(value), size);
    // tar --xattrs-include='*' stores lists in the kernel's form, with --acls a second time.
    const bool is_access = key == kAccessAcl;
    if (is_access || key == kDefaultAcl) {
      auto& list = is_access ? attributes_.acl.access : attributes_.acl.preset;
      if (list.empty()) list = std::move(content);
      continue;
    }
    attributes_.extended.push_back({.name = name_of, .value = std::move(content)});
  }
}

void ArchiveReader::read_acl() {
  constexpr int kPosix = ARCHIVE_ENTRY_ACL_TYPE_ACCESS | ARCHIVE_ENTRY_ACL_TYPE_DEFAULT;
  auto access = kernel_acl(entry_, ARCHIVE_ENTRY_ACL_TYPE_ACCESS);
  auto preset = kernel_acl(entry_, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT);
  const bool other_kind = (archive_entry_acl_types(entry_) & ~kPosix) != 0;
  attributes_.acl.lost = other_kind || !access || !preset;
  attributes_.acl.access = std::move(access).value_or("");
  attributes_.acl.preset = std::move(preset).value_or("");
}

Result<std::optional<ContentBlock>> ArchiveReader::content() {
  PAWL_CHECK(check_stop());
  const void* bytes = nullptr;
  std::size_t size = 0;
  std::int64_t offset = 0;
  const auto read = archive_read_data_block(handle_.get(), &bytes, &size, &offset);
  if (read == ARCHIVE_EOF) {
    if (!head_.sparse && delivered_ != head_.size) {
      return broken(fmt::format("it has {} bytes of content instead of {}", delivered_, head_.size));
    }
    return std::nullopt;
  }
  if (read != ARCHIVE_OK) return broken(archive_error_string(handle_.get()));
  const auto begin = static_cast<std::uint64_t>(offset);
  if (offset < 0 || begin < delivered_ || begin > head_.size || size > head_.size - begin) {
    return broken("it has content outside its size");
  }
  delivered_ = begin + size;
  return ContentBlock{static_cast<const char*>(bytes), size, begin};
}

ArchiveStats ArchiveReader::stats() const {
  return {.entries = rules_.entries(), .files = rules_.files(), .bytes = rules_.bytes()};
}

Result<ArchiveStats> scan(const std::string& path, const ArchiveOptions& options) {
  PAWL_TRY(const auto reader, ArchiveReader::open(path, options));
  while (true) {
    PAWL_TRY(const auto entry, reader->next());
    if (!entry) return reader->stats();
    // The map of a sparse file can contradict itself in what the headers do not show, and libarchive can find
    // less content than they promise. What unpacking would refuse is refused here.
    for (bool more = entry->kind == EntryKind::regular; more;) {
      PAWL_TRY(const auto block, reader->content());
      more = block.has_value();
    }
  }
}

}  // namespace pawl::images
