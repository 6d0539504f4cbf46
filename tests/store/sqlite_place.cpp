// SPDX-License-Identifier: Apache-2.0
#include "tests/store/sqlite_place.hpp"

#include <cstdlib>

namespace pawl::test {

namespace fs = std::filesystem;

Directory::Directory() {
  // In memory a sync costs nothing, and none of these tests cuts the power.
  const auto parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  auto name = (parent / "pawl_store_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

Directory::~Directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

SqliteOptions SqlitePlace::options(const PlaceOptions& wanted) const {
  return {.path = path_,
          .flush_every = wanted.flush_every,
          .entry_bytes = wanted.entry_bytes,
          .query_limits = wanted.query_limits};
}

Result<std::unique_ptr<Store>> SqlitePlace::open(const PlaceOptions& wanted) {
  return open_sqlite(options(wanted));
}

Result<std::unique_ptr<Store>> SqlitePlace::open_read_only() {
  return open_sqlite({.path = path_, .read_only = true});
}

Result<std::unique_ptr<Store>> SqlitePlace::open_after_crash(std::unique_ptr<Store> store,
                                                             const PlaceOptions& wanted) {
  // What another process would find now: the files as they are while the store is open.
  const auto copy = directory_.path() / ("crash" + std::to_string(++crashes_));
  fs::create_directory(copy);
  for (const char* suffix : {"", "-wal"}) {
    if (fs::exists(path_ + suffix)) fs::copy_file(path_ + suffix, copy / ("pawl.db" + std::string(suffix)));
  }
  store.reset();
  path_ = (copy / "pawl.db").string();
  return open(wanted);
}

Result<std::unique_ptr<Store>> SqlitePlace::open_backup() { return open_sqlite({.path = backup_path()}); }

}  // namespace pawl::test
