// SPDX-License-Identifier: Apache-2.0
// Backups: a copy of one durable state, made while the owner stays in use.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "store/sqlite/partial_file.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {
namespace {

namespace fs = std::filesystem;

/// 4 MiB per step, so that progress is reported.
constexpr int kPagesPerStep = 1024;

Result<void> copy_pages(Database& from, Database& to, const std::function<void(double)>& progress) {
  auto* backup = sqlite3_backup_init(to.get(), "main", from.get(), "main");
  if (backup == nullptr) return fail(to.error(sqlite3_errcode(to.get()), "starting the backup"));
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    code = sqlite3_backup_step(backup, kPagesPerStep);
    const double all = sqlite3_backup_pagecount(backup);
    const double left = sqlite3_backup_remaining(backup);
    if (progress && all > 0) progress((all - left) / all);
  }
  const int finished = sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE)
    return fail(to.error(finished == SQLITE_OK ? code : finished, "copying the store"));
  return {};
}

/// Makes the copy an independent store: cursors of the original are not valid for it.
Result<void> make_independent(const std::string& path, const std::string& incarnation) {
  PAWL_TRY(auto db, Database::open(path, SQLITE_OPEN_READWRITE, ""));
  PAWL_CHECK(prepare_connection(db, Access::owner));
  return db.run(
      fmt::format("BEGIN IMMEDIATE; UPDATE pawl_meta SET value = '{}' WHERE name = 'incarnation'; "
                  "UPDATE pawl_meta SET value = 0 WHERE name = 'epoch'; COMMIT; "
                  "PRAGMA wal_checkpoint(TRUNCATE)",
                  incarnation));
}

}  // namespace

Result<void> SqliteStore::backup(const std::string& path, const std::function<void(double)>& progress) {
  PAWL_CHECK(status_.usable());
  std::error_code ignored;
  if (path.empty() || fs::exists(fs::symlink_status(path, ignored))) {
    return fail(Code::invalid_argument, fmt::format("the target '{}' of a backup must not exist yet", path),
                {{"path", path}});
  }
  const PartialFile partial(path + ".partial");
  {
    // Not from the pool: this takes long and the pool is small.
    PAWL_TRY(const auto source, Reader::open(options_));
    // With an open snapshot the source does not change: otherwise each commit would restart the copy.
    PAWL_TRY(const auto snapshot, Snapshot::begin(source->database()));
    PAWL_CHECK(read_meta(source->database()));
    PAWL_TRY(auto target, Database::open(partial.path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ""));
    PAWL_CHECK(copy_pages(source->database(), target, progress));
  }
  PAWL_CHECK(make_independent(partial.path(), make_incarnation("")));
  return partial.move_to(path);
}

}  // namespace pawl::sqlite
