// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace pawl::sqlite {
namespace {

namespace fs = std::filesystem;

Error file_error(std::string_view doing, const std::string& path) {
  const int number = errno;
  const auto text = std::generic_category().message(number);
  return Error(number == ENOSPC ? Code::disk_full : Code::store_io,
               fmt::format("{} '{}': {}", doing, path, text), {{"path", path}});
}

Result<void> sync(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) return fail(file_error("opening", path));
  const bool synced = fsync(file) == 0;
  auto error = file_error("syncing", path);
  close(file);
  if (!synced) return fail(std::move(error));
  return {};
}

}  // namespace

PartialFile::PartialFile(std::string path) : path_(std::move(path)) { remove(); }
PartialFile::~PartialFile() { remove(); }

void PartialFile::remove() const {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ignored;  // usually the file does not exist
    fs::remove(path_ + suffix, ignored);
  }
}

Result<void> PartialFile::move_to(const std::string& path) const {
  PAWL_CHECK(sync(path_, O_RDONLY));
  // A file that was created in the meantime is not replaced either.
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    return fail(file_error("renaming the copy to", path));
  }
  const auto parent = fs::path(path).parent_path();
  return sync(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY);
}

}  // namespace pawl::sqlite
