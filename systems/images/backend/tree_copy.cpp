// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "images/backend/os.hpp"
#include "images/backend/tree.hpp"
#include "images/backend/tree_entries.hpp"

namespace pawl::images::pools {
namespace {

/// An entry on both sides. `path` is its name from the root, for messages and for hard links.
struct CopyEntry {
  int from = -1;
  int to = -1;
  std::string name;
  std::string path;
  struct stat status{};
};

std::string in_process(int directory, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", directory, name);
}

/// One copying of one tree.
class TreeCopy {
 public:
  explicit TreeCopy(int root) : root_(root) {}

  Result<void> directory(int from, int to, const std::string& path) {
    PAWL_TRY(const auto names, entries_of(from, path));
    for (const auto& name : names) {
      CopyEntry entry{from, to, name, path.empty() ? name : fmt::format("{}/{}", path, name), {}};
      if (::fstatat(from, name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0) {
        return fail(system_error("look at", entry.path));
      }
      PAWL_CHECK(one(entry));
    }
    return {};
  }

  /// Owner, mode, attributes and times, in this order: each of them may undo what comes after it.
  Result<void> dress(const CopyEntry& entry) const {
    const auto& status = entry.status;
    const bool link = S_ISLNK(status.st_mode);
    if (privileged_ &&
        ::fchownat(entry.to, entry.name.c_str(), status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(system_error("set the owner of", entry.path));
    }
    if (!link && ::fchmodat(entry.to, entry.name.c_str(), status.st_mode & 07777U, 0) != 0) {
      return fail(system_error("set the mode of", entry.path));
    }
    PAWL_CHECK(attributes(entry));
    const std::array<timespec, 2> times{status.st_atim, status.st_mtim};
    if (::utimensat(entry.to, entry.name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(system_error("set the times of", entry.path));
    }
    return {};
  }

 private:
  Result<void> one(const CopyEntry& entry) {
    const auto& status = entry.status;
    if (!S_ISDIR(status.st_mode) && status.st_nlink > 1) {
      const auto [known, is_new] = linked_.try_emplace({status.st_dev, status.st_ino}, entry.path);
      if (!is_new) {
        if (::linkat(root_, known->second.c_str(), entry.to, entry.name.c_str(), 0) == 0) return {};
        return fail(system_error("link", entry.path));
      }
    }
    if (S_ISDIR(status.st_mode)) {
      PAWL_CHECK(subdirectory(entry));
    } else if (S_ISREG(status.st_mode)) {
      PAWL_CHECK(file(entry));
    } else if (S_ISLNK(status.st_mode)) {
      PAWL_CHECK(link(entry));
    } else if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || privileged_) {
      if (::mknodat(entry.to, entry.name.c_str(), (status.st_mode & S_IFMT) | 0600U, status.st_rdev) != 0) {
        return fail(system_error("make the special file", entry.path));
      }
    } else {
      return {};  // a device, which only the superuser can make
    }
    return dress(entry);
  }

  Result<void> subdirectory(const CopyEntry& entry) {
    PAWL_TRY(const auto from, open_directory(entry.from, entry.name));
    if (::mkdirat(entry.to, entry.name.c_str(), 0700) != 0) return fail(system_error("make", entry.path));
    PAWL_TRY(const auto to, open_directory(entry.to, entry.name));
    return directory(from.get(), to.get(), entry.path);
  }

  static Result<void> link(const CopyEntry& entry) {
    std::string target(static_cast<std::size_t>(std::max<off_t>(entry.status.st_size, 4096)) + 1, '\0');
    const auto size = ::readlinkat(entry.from, entry.name.c_str(), target.data(), target.size());
    if (size < 0) return fail(system_error("read the link", entry.path));
    target.resize(static_cast<std::size_t>(size));
    if (::symlinkat(target.c_str(), entry.to, entry.name.c_str()) == 0) return {};
    return fail(system_error("make the link", entry.path));
  }

  Result<void> file(const CopyEntry& entry) {
    constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    constexpr int kWrite = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const Descriptor from(::openat(entry.from, entry.name.c_str(), kRead));
    if (!from) return fail(system_error("open", entry.path));
    const Descriptor to(::openat(entry.to, entry.name.c_str(), kWrite, 0600));
    if (!to) return fail(system_error("make", entry.path));
    if (clones_ && ::ioctl(to.get(), FICLONE, from.get()) == 0) return {};
    clones_ = false;
    if (::ftruncate(to.get(), entry.status.st_size) != 0) return fail(system_error("size", entry.path));
    off_t at = 0;
    while (at < entry.status.st_size) {
      const off_t begin = ::lseek(from.get(), at, SEEK_DATA);
      if (begin < 0 && errno == ENXIO) return {};  // only a hole is left
      if (begin < 0) return fail(system_error("read", entry.path));
      const off_t end = ::lseek(from.get(), begin, SEEK_HOLE);
      if (end < 0) return fail(system_error("read", entry.path));
      PAWL_CHECK(range(from.get(), to.get(), begin, end, entry.path));
      at = end;
    }
    return {};
  }

  Result<void> range(int from, int to, off_t at, off_t end, const std::string& path) {
    while (at < end && in_kernel_) {
      off_t source = at;
      off_t target = at;
      const auto count = ::copy_file_range(from, &source, to, &target, static_cast<std::size_t>(end - at), 0);
      if (count == 0) return {};  // the file has become shorter
      if (count > 0) {
        at += count;
      } else if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
        in_kernel_ = false;
      } else if (errno != EINTR) {
        return fail(system_error("copy", path));
      }
    }
    std::vector<char> buffer(at < end ? std::size_t{1} << 20U : 0);
    while (at < end) {
      const auto wanted = std::min(buffer.size(), static_cast<std::size_t>(end - at));
      const auto count = ::pread(from, buffer.data(), wanted, at);
      if (count == 0) return {};
      if (count < 0) return fail(system_error("read", path));
      for (ssize_t done = 0; done < count;) {
        const auto written =
            ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(count - done), at + done);
        if (written < 0) return fail(system_error("write", path));
        done += written;
      }
      at += count;
    }
    return {};
  }

  /// Those that need a privilege are left out where it is missing.
  Result<void> attributes(const CopyEntry& entry) const {
    const auto source = in_process(entry.from, entry.name);
    const auto target = in_process(entry.to, entry.name);
    const auto size = ::llistxattr(source.c_str(), nullptr, 0);
    if (size == 0 || (size < 0 && errno == EOPNOTSUPP)) return {};
    if (size < 0) return fail(system_error("list the attributes of", entry.path));
    std::string names(static_cast<std::size_t>(size), '\0');
    const auto listed = ::llistxattr(source.c_str(), names.data(), names.size());
    if (listed < 0) return fail(system_error("list the attributes of", entry.path));
    names.resize(static_cast<std::size_t>(listed));
    for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
      const char* name = names.data() + at;
      std::string value(65536, '\0');
      const auto length = ::lgetxattr(source.c_str(), name, value.data(), value.size());
      if (length < 0) return fail(system_error("read an attribute of", entry.path));
      if (::lsetxattr(target.c_str(), name, value.data(), static_cast<std::size_t>(length), 0) == 0) continue;
      if (errno == EOPNOTSUPP || (!privileged_ && errno == EPERM)) continue;
      return fail(system_error("set an attribute of", entry.path));
    }
    return {};
  }

  const int root_;
  const bool privileged_ = ::geteuid() == 0;
  bool clones_ = true;
  bool in_kernel_ = true;
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;
};

}  // namespace

Result<void> copy_tree(const std::string& from, const std::string& to) {
  PAWL_TRY(const auto source, open_file(from, O_RDONLY | O_DIRECTORY));
  PAWL_TRY(const auto target, open_file(to, O_RDONLY | O_DIRECTORY));
  TreeCopy copy(target.get());
  PAWL_CHECK(copy.directory(source.get(), target.get(), ""));
  CopyEntry top{source.get(), target.get(), ".", "the top directory", {}};
  if (::fstat(source.get(), &top.status) != 0) return fail(system_error("look at", from));
  return copy.dress(top);
}

}  // namespace pawl::images::pools
