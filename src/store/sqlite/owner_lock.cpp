// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/owner_lock.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <vector>

#include "pawl/json.hpp"

namespace pawl::sqlite {

struct OwnerLock::File {
  std::vector<std::max_align_t> space;  ///< the VFS's own structure
  const char* name = nullptr;           ///< made by sqlite3_create_filename, must live as long as the file
  bool open = false;

  sqlite3_file* get() { return reinterpret_cast<sqlite3_file*>(space.data()); }
  const sqlite3_io_methods& methods() { return *get()->pMethods; }
};

namespace {

constexpr const char* kSuffix = ".owner";
constexpr std::size_t kLineBytes = 512;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string owner_line(Time now) {
  JsonWriter out;
  out.begin_object().key("pid").integer(std::int64_t{getpid()});
  out.key("host").string(host_name()).key("since").string(to_string(now)).end_object();
  return out.take().value_or("{}") + "\n";
}

std::string member(const Result<JsonDocument>& document, std::string_view name) {
  const auto value = document ? document->root().find(name) : std::nullopt;
  if (!value) return "unknown";
  const auto text = value->as_string();
  return text ? std::string(*text) : value->to_text();
}

Error locked(const std::string& path, const std::string& line) {
  const auto document = JsonDocument::parse(line.substr(0, line.find('\n')));
  const auto pid = member(document, "pid");
  const auto host = member(document, "host");
  const auto since = member(document, "since");
  if (!document) {
    return Error(
        Code::store_locked,
        fmt::format("'{}' is owned by another process, and its file '{}{}', which says by which, was "
                    "removed or cannot be read; stop it, or open it read-only",
                    path, path, kSuffix),
        {{"path", path}, {"pid", pid}, {"host", host}, {"since", since}});
  }
  return Error(Code::store_locked,
               fmt::format("'{}' is owned by process {} on {} since {}; stop it, or open it read-only", path,
                           pid, host, since),
               {{"path", path}, {"pid", pid}, {"host", host}, {"since", since}});
}

Error not_lockable(int code, const std::string& name) {
  return to_error(nullptr, code,
                  fmt::format("locking '{}', which needs a local file system with POSIX locks", name));
}

std::string full_name(sqlite3_vfs& vfs, const std::string& path) {
  std::string full(static_cast<std::size_t>(vfs.mxPathname) + 1, '\0');
  const int code = vfs.xFullPathname(&vfs, path.c_str(), static_cast<int>(full.size()), full.data());
  // This code says that a symbolic link was followed, which is intended.
  if (code != SQLITE_OK && code != SQLITE_OK_SYMLINK) return path;
  return full.c_str();
}

}  // namespace

void OwnerLock::Close::operator()(File* file) const {
  if (file->open) file->methods().xClose(file->get());
  sqlite3_free_filename(file->name);
  delete file;
}

OwnerLock::~OwnerLock() {
  // The store has no owner now; closing the file releases the lock.
  if (owner_) owner_->methods().xTruncate(owner_->get(), 0);
}

Result<OwnerLock::Handle> OwnerLock::open(sqlite3_vfs& vfs, const std::string& name) {
  Handle file(new File);
  file->space.resize(static_cast<std::size_t>(vfs.szOsFile) / sizeof(std::max_align_t) + 1);
  file->name = sqlite3_create_filename(name.c_str(), "", "", 0, nullptr);
  // Only a main database can be locked, so `.owner` is opened as one.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
  const int opened = vfs.xOpen(&vfs, file->name, file->get(), flags, nullptr);
  file->open = file->get()->pMethods != nullptr;
  if (opened != SQLITE_OK) return fail(to_error(nullptr, opened, fmt::format("opening '{}'", name)));
  return file;
}

/// RESERVED excludes itself, and unlike EXCLUSIVE two openers at the same moment cannot both fail.
int OwnerLock::reserve(File& file) {
  const int code = file.methods().xLock(file.get(), SQLITE_LOCK_SHARED);
  return code == SQLITE_OK ? file.methods().xLock(file.get(), SQLITE_LOCK_RESERVED) : code;
}

std::string OwnerLock::line_of(File& file) {
  std::array<char, kLineBytes + 1> line{};  // zeros after a shorter file
  file.methods().xRead(file.get(), line.data(), static_cast<int>(kLineBytes), 0);
  return line.data();
}

Result<OwnerLock> OwnerLock::take(const std::string& path, const std::string& vfs_name) {
  OwnerLock lock;
  lock.path_ = path;
  lock.vfs_ = sqlite3_vfs_find(vfs_name.empty() ? nullptr : vfs_name.c_str());
  if (lock.vfs_ == nullptr) {
    return fail(Code::invalid_argument, fmt::format("no SQLite VFS is registered as '{}'", vfs_name));
  }
  // The full name resolves symbolic links, so that two names of one file share one lock.
  const auto name = full_name(*lock.vfs_, path) + kSuffix;
  int is_there = 0;
  lock.vfs_->xAccess(lock.vfs_, name.c_str(), SQLITE_ACCESS_READWRITE, &is_there);
  lock.made_ = is_there == 0;
  PAWL_TRY(lock.owner_, open(*lock.vfs_, name));
  const int code = reserve(*lock.owner_);
  if (code == SQLITE_OK) return lock;
  auto error = code == SQLITE_BUSY ? locked(path, line_of(*lock.owner_)) : not_lockable(code, name);
  lock.owner_.reset();
  return fail(std::move(error));
}

Result<void> OwnerLock::take_database(Time now) {
  const auto name = full_name(*vfs_, path_);
  PAWL_TRY(database_, open(*vfs_, name));
  if (const int code = reserve(*database_); code != SQLITE_OK) {
    auto error = code == SQLITE_BUSY ? locked(path_, line_of(*owner_)) : not_lockable(code, name);
    database_.reset();
    owner_.reset();
    // The owner's `.owner` file was removed; a new file would not describe that owner.
    if (made_) vfs_->xDelete(vfs_, (name + kSuffix).c_str(), 0);
    return fail(std::move(error));
  }
  // Information only. Always of the same length, so that it overwrites the old line even on a full disk.
  auto line = owner_line(now);
  line.resize(kLineBytes, ' ');
  owner_->methods().xWrite(owner_->get(), line.data(), static_cast<int>(line.size()), 0);
  return {};
}

}  // namespace pawl::sqlite
