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
  std::vector<std::max_align_t> space;  ///< the VFS keeps its own structure here
  const char* name = nullptr;           ///< made by sqlite3_create_filename, must live as long as the file
  bool open = false;

  sqlite3_file* get() { return reinterpret_cast<sqlite3_file*>(space.data()); }
  const sqlite3_io_methods& methods() { return *get()->pMethods; }
};

namespace {

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
  const auto document = JsonDocument::parse(line);
  const auto pid = member(document, "pid");
  const auto host = member(document, "host");
  const auto since = member(document, "since");
  return Error(Code::store_locked,
               fmt::format("'{}' is owned by process {} on {} since {}; stop it, or open for reading only",
                           path, pid, host, since),
               {{"path", path}, {"pid", pid}, {"host", host}, {"since", since}});
}

std::string full_name(sqlite3_vfs& vfs, const std::string& path) {
  std::string full(static_cast<std::size_t>(vfs.mxPathname) + 1, '\0');
  const int code = vfs.xFullPathname(&vfs, path.c_str(), static_cast<int>(full.size()), full.data());
  // The code tells that a symbolic link was followed, which is what is wanted.
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
  // Nobody owns it now; the lock itself goes with the file.
  if (file_) file_->methods().xTruncate(file_->get(), 0);
}

Result<OwnerLock> OwnerLock::take(const std::string& path, const std::string& vfs_name, Time now) {
  auto* vfs = sqlite3_vfs_find(vfs_name.empty() ? nullptr : vfs_name.c_str());
  if (vfs == nullptr) {
    return fail(Code::invalid_argument, fmt::format("no SQLite VFS is registered as '{}'", vfs_name));
  }
  // The full name follows symbolic links, so that two names of one file share one lock.
  const auto name = full_name(*vfs, path) + ".owner";
  std::unique_ptr<File, Close> file(new File);
  file->space.resize(static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
  file->name = sqlite3_create_filename(name.c_str(), "", "", 0, nullptr);
  // Only a main database can be locked, so that is what it claims to be.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
  const int opened = vfs->xOpen(vfs, file->name, file->get(), flags, nullptr);
  file->open = file->get()->pMethods != nullptr;
  if (opened != SQLITE_OK) return fail(to_error(nullptr, opened, fmt::format("opening '{}'", name)));

  const auto& methods = file->methods();
  // RESERVED excludes itself, and unlike EXCLUSIVE two openers at the same moment cannot both fail.
  int code = methods.xLock(file->get(), SQLITE_LOCK_SHARED);
  if (code == SQLITE_OK) code = methods.xLock(file->get(), SQLITE_LOCK_RESERVED);
  if (code == SQLITE_BUSY) {
    std::array<char, 512> line{};  // a shorter file is filled up with zeros
    methods.xRead(file->get(), line.data(), static_cast<int>(line.size()) - 1, 0);
    return fail(locked(path, line.data()));
  }
  if (code != SQLITE_OK) return fail(to_error(nullptr, code, fmt::format("locking '{}'", name)));

  const auto line = owner_line(now);
  code = methods.xTruncate(file->get(), 0);
  if (code == SQLITE_OK) code = methods.xWrite(file->get(), line.data(), static_cast<int>(line.size()), 0);
  if (code != SQLITE_OK) return fail(to_error(nullptr, code, fmt::format("writing '{}'", name)));
  OwnerLock lock;
  lock.file_ = std::move(file);
  return lock;
}

}  // namespace pawl::sqlite
