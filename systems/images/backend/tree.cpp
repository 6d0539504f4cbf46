// SPDX-License-Identifier: Apache-2.0
#include "images/backend/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "images/backend/os.hpp"
#include "images/backend/tree_entries.hpp"

namespace pawl::images::pools {
namespace {

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

Result<void> remove_entries(int directory, const std::string& path) {
  PAWL_TRY(const auto names, entries_of(directory, path));
  for (const auto& name : names) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) continue;
    const auto below = path + "/" + name;
    if (errno != EISDIR) return fail(system_error("remove", below));
    // A directory may be closed to its owner, too; only the superuser is not held up by that.
    if (::geteuid() != 0 && ::fchmodat(directory, name.c_str(), 0700, 0) != 0) {
      return fail(system_error("open", below));
    }
    PAWL_TRY(const auto opened, open_directory(directory, name));
    PAWL_CHECK(remove_entries(opened.get(), below));
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0) return fail(system_error("remove", below));
  }
  return {};
}

/// Files with several names that have been counted.
using CountedFiles = std::set<std::pair<dev_t, ino_t>>;

Result<std::uint64_t> bytes_in(int directory, const std::string& path, CountedFiles& counted) {
  std::uint64_t sum = 0;
  PAWL_TRY(const auto names, entries_of(directory, path));
  for (const auto& name : names) {
    struct stat status{};
    if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // the volume is in use
      return fail(system_error("look at", path + "/" + name));
    }
    const bool is_directory = S_ISDIR(status.st_mode);
    if (!is_directory && status.st_nlink > 1 && !counted.emplace(status.st_dev, status.st_ino).second)
      continue;
    sum += static_cast<std::uint64_t>(status.st_blocks) * 512;
    if (!is_directory) continue;
    PAWL_TRY(const auto inner, open_directory(directory, name));
    PAWL_TRY(const auto below, bytes_in(inner.get(), path + "/" + name, counted));
    sum += below;
  }
  return sum;
}

}  // namespace

Result<std::vector<std::string>> entries_of(int directory, const std::string& path) {
  Descriptor again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again) return fail(system_error("open", path));
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(again.get()));
  if (!stream) return fail(system_error("open", path));
  again.release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    // The stream belongs to this call alone.
    const auto* entry = ::readdir(stream.get());  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr && errno != 0) return fail(system_error("read", path));
    if (entry == nullptr) return names;
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

Result<void> remove_tree(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory && errno == ENOENT) return {};
  if (!directory) return fail(system_error("open", path));
  PAWL_CHECK(remove_entries(directory.get(), path));
  if (::rmdir(path.c_str()) != 0) return fail(system_error("remove", path));
  return {};
}

Result<std::uint64_t> tree_bytes(const std::string& path) {
  PAWL_TRY(const auto directory, open_file(path, O_RDONLY | O_DIRECTORY));
  CountedFiles counted;
  return bytes_in(directory.get(), path, counted);
}

}  // namespace pawl::images::pools
