// SPDX-License-Identifier: Apache-2.0
#include "workers/process/process_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workers/process/names.hpp"
#include "workers/process/proc.hpp"
#include "workers/process/protocol.hpp"

namespace pawl::workers {
namespace {

constexpr int kLooks = 1000;

struct flock whole_file() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  return lock;
}

Result<Descriptor> open_place(int parent, const std::string& name) {
  Descriptor directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory && errno != ENOENT) return fail(process_error("open the directory", name));
  return directory;
}

/// Atomic: writes to a temporary name first.
Result<void> write_name(int directory, std::string_view id) {
  constexpr const char* kNew = "name.new";
  const Descriptor file(
      ::openat(directory, kNew, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(process_error("write", kNew));
  if (::write(file.get(), id.data(), id.size()) != static_cast<ssize_t>(id.size()) ||
      ::fsync(file.get()) != 0 || ::renameat(directory, kNew, directory, shim::kNameFile) != 0) {
    return fail(process_error("write", kNew));
  }
  return {};
}

bool same(const DirectoryState& a, const DirectoryState& b) {
  return a.held == b.held && a.known == b.known && a.alive == b.alive &&
         a.record.generation == b.record.generation && a.record.end == b.record.end &&
         a.record.shim == b.record.shim;
}

/// Whether the result does not depend on the order of the reads.
bool is_settled(const DirectoryState& seen) {
  if (seen.held) return seen.known && seen.alive;
  return !seen.known || seen.ended();
}

}  // namespace

Result<ProcessDirectory> ProcessDirectory::make(int parent, std::string_view id) {
  PAWL_TRY(auto name, directory_name(id));
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(process_error("make the directory", name));
  }
  PAWL_TRY(auto directory, open_place(parent, name));
  if (!directory) return fail(process_error("open the directory", name, ENOENT));
  if (is_hashed(name) && ::faccessat(directory.get(), shim::kNameFile, F_OK, 0) != 0) {
    PAWL_CHECK(write_name(directory.get(), id));
  }
  const Descriptor lock(
      ::openat(directory.get(), shim::kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail(process_error("make the lock of", name));
  // The shim makes entries in the directory durable, which requires that the directory itself is.
  if (::fsync(parent) != 0) return fail(process_error("make durable", name));
  return ProcessDirectory(std::move(directory), std::move(name));
}

Result<std::optional<ProcessDirectory>> ProcessDirectory::open(int parent, std::string_view id) {
  PAWL_TRY(auto name, directory_name(id));
  PAWL_TRY(auto directory, open_place(parent, name));
  if (!directory) return std::nullopt;
  return ProcessDirectory(std::move(directory), std::move(name));
}

Result<bool> ProcessDirectory::held() const {
  const Descriptor file(::openat(directory(), shim::kLockFile, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return false;
  if (!file) return fail(process_error("open the lock of", name_));
  auto lock = whole_file();
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0) return fail(process_error("query the lock of", name_));
  return lock.l_type != F_UNLCK;
}

Result<DirectoryState> ProcessDirectory::read_state() const {
  std::optional<DirectoryState> before;
  for (int i = 0; i < kLooks; ++i) {
    DirectoryState seen;
    // Read the lock first: a shim records the exit before it releases the lock.
    PAWL_TRY(seen.held, held());
    PAWL_TRY(const auto text, read_below(directory(), shim::kStatusFile, kLongestRecord));
    if (text) {
      if (!read_record(*text, seen.record)) {
        return fail(Code::process_failed,
                    fmt::format("the status of {} cannot be read; if nothing of it runs, remove its "
                                "directory",
                                name_));
      }
      seen.known = true;
      seen.mark = seen.record.mark;
      seen.step = seen.record.step;
      seen.record.id = seen.record.mark = seen.record.step = {};
      seen.alive = seen.held && lives(seen.record.shim);
    }
    if (is_settled(seen) || (before && same(*before, seen))) return seen;
    before = std::move(seen);
  }
  return fail(Code::process_failed,
              fmt::format("{} starts and ends too fast to read a consistent state", name_));
}

Result<Descriptor> ProcessDirectory::take_lock() const {
  Descriptor file(::openat(directory(), shim::kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(process_error("open the lock of", name_));
  auto lock = whole_file();
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return file;
  if (errno == EAGAIN || errno == EACCES) return Descriptor();
  return fail(process_error("lock", name_));
}

Result<void> ProcessDirectory::remove(int parent) const {
  for (const char* file : {shim::kStatusFile, shim::kStatusNewFile, shim::kLogFile, shim::kOldLogFile,
                           shim::kNameFile, "name.new", shim::kLockFile}) {
    if (::unlinkat(directory(), file, 0) != 0 && errno != ENOENT) return fail(process_error("remove", file));
  }
  if (::unlinkat(parent, name_.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return fail(process_error("remove the directory", name_));
  }
  return {};
}

}  // namespace pawl::workers
