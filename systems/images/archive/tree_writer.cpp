// SPDX-License-Identifier: Apache-2.0
#include "images/archive/tree_writer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>

#include "images/archive/findings.hpp"

namespace pawl::images {
namespace {

constexpr std::size_t kMostNotes = 10;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

std::array<timespec, 2> only_mtime(const timespec& mtime) {
  return {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, mtime};
}

}  // namespace

TreeWriter::TreeWriter(int root, const ArchivePolicy& policy)
    : root_(root), policy_(policy), privileged_(::geteuid() == 0) {}

Result<void> TreeWriter::prepare() const {
  auto opened = open_beneath(root_, "", O_RDONLY | O_DIRECTORY);
  if (!opened) {
    const auto why = errno;
    if (why == ENOSYS) {
      return fail(Code::volume_failed,
                  "this kernel has no openat2, without which nothing is unpacked; Linux has it from 5.6 on");
    }
    return write_failed(why, "opening the directory to unpack into,", "");
  }
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0)));
  if (!listing) return write_failed(errno, "listing the directory to unpack into,", "");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this stream
  while (const auto* found = ::readdir(listing.get())) {
    const std::string_view name_found(found->d_name);
    if (name_found == "." || name_found == ".." || name_found == "lost+found") continue;
    return fail(Code::volume_failed, fmt::format("the directory to unpack into must be empty, but has \"{}\"",
                                                 entry_name(name_found)));
  }
  return {};
}

void TreeWriter::note(std::string_view text) {
  if (notes_.size() == kMostNotes || std::ranges::find(notes_, text) != notes_.end()) return;
  notes_.emplace_back(text);
}

/// A descriptor of a directory, made if it is not there; open until 32 others were asked for.
Result<int> TreeWriter::open_directory(std::string_view path) {
  ++clock_;
  auto* oldest = &parents_.front();
  for (auto& parent : parents_) {
    if (parent.directory && parent.path == path) {
      parent.used = clock_;
      return parent.directory.get();
    }
    if (parent.used < oldest->used) oldest = &parent;
  }
  oldest->path = path;
  oldest->directory = {};
  oldest->directory = open_beneath(root_, oldest->path, O_RDONLY | O_DIRECTORY);
  if (!oldest->directory && errno == ENOENT) {
    PAWL_CHECK(make_parents(oldest->path));
    oldest->directory = open_beneath(root_, oldest->path, O_RDONLY | O_DIRECTORY);
  }
  if (!oldest->directory) return write_failed(errno, "opening", path);
  oldest->used = clock_;
  return oldest->directory.get();
}

/// Makes a directory and all above it that are missing.
Result<void> TreeWriter::make_parents(const std::string& path) {
  for (std::size_t slash = 0; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    const auto upper_slash = path.rfind('/', slash == std::string::npos ? slash : slash - 1);
    const auto upper = upper_slash == std::string::npos ? std::string() : path.substr(0, upper_slash);
    const auto name_begin = upper_slash == std::string::npos ? 0 : upper_slash + 1;
    const auto component = path.substr(name_begin, slash == std::string::npos ? slash : slash - name_begin);
    const auto above = open_beneath(root_, upper, O_RDONLY | O_DIRECTORY);
    if (!above) return write_failed(errno, "opening", upper);
    if (::mkdirat(above.get(), component.c_str(), 0700) == 0) {
      directories_.push_back({.path = path.substr(0, slash), .mode = 0755, .implied = true});
    } else if (errno != EEXIST) {
      return write_failed(errno, "making the directory", path.substr(0, slash));
    }
  }
  return {};
}

Result<TreeWriter::Place> TreeWriter::place_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return Place{root_, path.c_str()};
  PAWL_TRY(const auto parent, open_directory(std::string_view(path).substr(0, slash)));
  return Place{parent, path.c_str() + slash + 1};
}

Result<void> TreeWriter::write(const Admitted& entry, ArchiveReader& reader) {
  const auto& attributes = reader.attributes();
  if (!privileged_) note("owners were not kept: that needs root");
  if (attributes.acl.lost) note("access control lists with names instead of numbers were not kept");
  switch (entry.kind) {
    case EntryKind::regular:
      return write_file(entry, reader);
    case EntryKind::directory:
      return write_directory(entry, attributes);
    case EntryKind::symlink:
      return write_symlink(entry, attributes);
    case EntryKind::hardlink:
      return write_hardlink(entry);
    case EntryKind::fifo:
    case EntryKind::character_device:
    case EntryKind::block_device:
      return write_node(entry, attributes);
  }
  return {};
}

Result<void> TreeWriter::write_directory(const Admitted& entry, const Attributes& attributes) {
  if (!entry.path.empty()) {
    PAWL_TRY(const auto place, place_of(entry.path));
    // Open for us until all of it is written. What is there is a directory of this archive, or "lost+found";
    // for anything else opening it below, or later, fails.
    if (::mkdirat(place.parent, place.name, 0700) != 0 && errno != EEXIST) {
      return write_failed(errno, "making the directory", entry.path);
    }
  }
  if (!attributes.extended.empty()) {
    PAWL_TRY(const auto directory, open_directory(entry.path));
    PAWL_CHECK(set_extended(directory, entry, attributes));
  }
  directories_.push_back({.path = entry.path,
                          .mode = entry.mode,
                          .uid = attributes.uid,
                          .gid = attributes.gid,
                          .mtime = attributes.mtime,
                          .acl = attributes.acl});
  return {};
}

Result<void> TreeWriter::write_file(const Admitted& entry, ArchiveReader& reader) {
  const auto& attributes = reader.attributes();
  PAWL_TRY(const auto place, place_of(entry.path));
  // Writable for us until its attributes are set.
  const Descriptor file(::openat(place.parent, place.name,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 (entry.mode & 0777U) | S_IWUSR));
  if (!file) return write_failed(errno, "making the file", entry.path);
  PAWL_CHECK(write_content(file.get(), entry, reader));
  // Most files have what they need from the beginning, and looking is cheaper than setting.
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return write_failed(errno, "looking at", entry.path);
  // In this order: a change of owner drops capabilities and setuid bits; attributes need a writable file.
  const bool foreign = status.st_uid != attributes.uid || status.st_gid != attributes.gid;
  if (foreign && privileged_ && ::fchown(file.get(), attributes.uid, attributes.gid) != 0) {
    return write_failed(errno, "setting the owner of", entry.path);
  }
  PAWL_CHECK(set_extended(file.get(), entry, attributes));
  PAWL_CHECK(set_acl(file.get(), entry.path, attributes.acl));
  // Without its owner a setuid file would run as another user.
  const auto mode = privileged_ ? entry.mode : entry.mode & 01777U;
  if (mode != entry.mode) note("setuid and setgid bits were not kept: that needs root");
  const bool changed = (status.st_mode & 07777U) != mode || !attributes.acl.access.empty();
  if (changed && ::fchmod(file.get(), mode) != 0) {
    return write_failed(errno, "setting the mode of", entry.path);
  }
  if (::futimens(file.get(), only_mtime(attributes.mtime).data()) != 0) {
    return write_failed(errno, "setting the time of", entry.path);
  }
  return {};
}

Result<void> TreeWriter::write_content(int file, const Admitted& entry, ArchiveReader& reader) const {
  std::uint64_t end = 0;
  while (true) {
    PAWL_TRY(const auto block, reader.content());
    if (!block) break;
    for (std::size_t written = 0; written < block->size;) {
      const auto wrote = ::pwrite(file, block->bytes + written, block->size - written,
                                  static_cast<off_t>(block->offset + written));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return write_failed(errno, "writing", entry.path);
      written += static_cast<std::size_t>(wrote);
    }
    end = block->offset + block->size;
  }
  // The hole at the end of a sparse file.
  if (end < entry.size && ::ftruncate(file, static_cast<off_t>(entry.size)) != 0) {
    return write_failed(errno, "setting the size of", entry.path);
  }
  return {};
}

Result<void> TreeWriter::write_symlink(const Admitted& entry, const Attributes& attributes) {
  PAWL_TRY(const auto place, place_of(entry.path));
  if (::symlinkat(entry.link.c_str(), place.parent, place.name) != 0) {
    return write_failed(errno, "making the symbolic link", entry.path);
  }
  return set_owner_and_time(place, entry, attributes);
}

/// Its attributes are those of the file that it links to, which has them already.
Result<void> TreeWriter::write_hardlink(const Admitted& entry) {
  const auto slash = entry.link.rfind('/');
  const auto upper = slash == std::string::npos ? std::string() : entry.link.substr(0, slash);
  // Not from the cache: making room for one of the two parents must not close the other.
  const auto target = open_beneath(root_, upper, O_RDONLY | O_DIRECTORY);
  if (!target) return write_failed(errno, "opening", upper);
  const auto* target_name = entry.link.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  PAWL_TRY(const auto place, place_of(entry.path));
  if (::linkat(target.get(), target_name, place.parent, place.name, 0) != 0) {
    return write_failed(errno, "making the hard link", entry.path);
  }
  return {};
}

Result<void> TreeWriter::write_node(const Admitted& entry, const Attributes& attributes) {
  PAWL_TRY(const auto place, place_of(entry.path));
  const mode_t kind = entry.kind == EntryKind::fifo           ? S_IFIFO
                      : entry.kind == EntryKind::block_device ? S_IFBLK
                                                              : S_IFCHR;
  if (::mknodat(place.parent, place.name, kind | 0600, kind == S_IFIFO ? 0 : attributes.device) != 0) {
    if (errno == EPERM && kind != S_IFIFO) {
      note("device nodes were not made: that needs privileges");
      return {};
    }
    return write_failed(errno, "making the node", entry.path);
  }
  PAWL_CHECK(set_owner_and_time(place, entry, attributes));
  // After the owner. The file system's own time of change is all that this alters.
  if (::fchmodat(place.parent, place.name, entry.mode, AT_SYMLINK_NOFOLLOW) != 0) {
    return write_failed(errno, "setting the mode of", entry.path);
  }
  return {};
}

/// Owner and time of what cannot be opened.
Result<void> TreeWriter::set_owner_and_time(const Place& place, const Admitted& entry,
                                            const Attributes& attributes) {
  if (!attributes.extended.empty()) note("extended attributes of links, fifos and devices were not kept");
  if (!attributes.acl.access.empty()) note("access control lists of fifos and devices were not kept");
  if (privileged_ &&
      ::fchownat(place.parent, place.name, attributes.uid, attributes.gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return write_failed(errno, "setting the owner of", entry.path);
  }
  if (::utimensat(place.parent, place.name, only_mtime(attributes.mtime).data(), AT_SYMLINK_NOFOLLOW) != 0) {
    return write_failed(errno, "setting the time of", entry.path);
  }
  return {};
}

Result<void> TreeWriter::set_extended(int file, const Admitted& entry, const Attributes& attributes) {
  for (const auto& [key, value] : attributes.extended) {
    if (key == "security.capability" && policy_.set_id != SetIdPolicy::allow) {
      note("capabilities of files were not kept: they act like setuid, which images.set_id does not allow");
      continue;
    }
    const bool kept = key.starts_with("user.") || (key.starts_with("trusted.") && privileged_) ||
                      key == "security.capability";
    if (!kept) {
      note(fmt::format("extended attributes like {} were not kept", entry_name(key)));
      continue;
    }
    if (::fsetxattr(file, key.c_str(), value.data(), value.size(), 0) == 0) continue;
    if (errno == ENOTSUP || errno == EPERM) {
      note(fmt::format("extended attributes like {} were not kept: {}", entry_name(key), errno_text(errno)));
      continue;
    }
    return write_failed(errno, fmt::format("setting the attribute {} of", entry_name(key)), entry.path);
  }
  return {};
}

/// Before the mode, which has the last word on what the list and it have in common.
Result<void> TreeWriter::set_acl(int file, const std::string& path, const Attributes::Acl& acl) {
  for (const auto& [key, value] : {std::pair{kAccessAcl, &acl.access}, std::pair{kDefaultAcl, &acl.preset}}) {
    if (value->empty()) continue;
    if (!privileged_) {
      note("access control lists were not kept: that needs root");
      continue;
    }
    if (::fsetxattr(file, key, value->data(), value->size(), 0) == 0) continue;
    if (errno != ENOTSUP && errno != EPERM && errno != EINVAL && errno != EACCES) {
      return write_failed(errno, "setting the access control list of", path);
    }
    note(fmt::format("access control lists were not kept: {}", errno_text(errno)));
  }
  return {};
}

Result<void> TreeWriter::finish_directory(const Directory& directory) {
  const auto opened = open_beneath(root_, directory.path, O_RDONLY | O_DIRECTORY);
  if (!opened) return write_failed(errno, "opening", directory.path);
  if (!directory.implied && privileged_ && ::fchown(opened.get(), directory.uid, directory.gid) != 0) {
    return write_failed(errno, "setting the owner of", directory.path);
  }
  // Only now: what is made in a directory inherits from its list.
  PAWL_CHECK(set_acl(opened.get(), directory.path, directory.acl));
  if (::fchmod(opened.get(), directory.mode) != 0) {
    return write_failed(errno, "setting the mode of", directory.path);
  }
  if (!directory.implied && ::futimens(opened.get(), only_mtime(directory.mtime).data()) != 0) {
    return write_failed(errno, "setting the time of", directory.path);
  }
  return {};
}

Result<void> TreeWriter::finish() {
  // The deepest first, because a directory may be closed to us once it has its mode; of two entries for one
  // directory the later one last.
  std::map<std::ptrdiff_t, std::vector<const Directory*>, std::greater<>> by_depth;
  for (const auto& directory : directories_) {
    const auto depth = directory.path.empty() ? -1 : std::ranges::count(directory.path, '/');
    by_depth[depth].push_back(&directory);
  }
  for (const auto& [depth, directories] : by_depth) {
    for (const auto* directory : directories) PAWL_CHECK(finish_directory(*directory));
  }
  if (::syncfs(root_) != 0) return write_failed(errno, "syncing the file system of", "");
  return {};
}

Result<ArchiveStats> extract(const std::string& path, int root, const ArchiveOptions& options) {
  PAWL_TRY(const auto reader, ArchiveReader::open(path, options));
  TreeWriter writer(root, options.policy);
  PAWL_CHECK(writer.prepare());
  while (true) {
    PAWL_TRY(const auto entry, reader->next());
    if (!entry) break;
    PAWL_CHECK(writer.write(*entry, *reader));
  }
  PAWL_CHECK(reader->check_digest());
  PAWL_CHECK(writer.finish());
  auto stats = reader->stats();
  stats.notes = std::move(writer).notes();
  return stats;
}

}  // namespace pawl::images
