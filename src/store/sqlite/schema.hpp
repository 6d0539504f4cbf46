// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The format of a Pawl file: its tables, by numbered migrations, its settings, and the table `pawl_meta`.
///
///     PAWL_CHECK(prepare_connection(db, Access::owner));
///     PAWL_CHECK(migrate(db, make_incarnation(vfs)));
///     PAWL_TRY(auto meta, read_meta(db));

#include <chrono>
#include <cstdint>
#include <string>

#include "store/sqlite/connection.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// "Pawl" in the file's header; distinguishes Pawl's files from those of other programs.
inline constexpr std::int64_t kApplicationId = 0x5061776c;
/// The newest schema this program writes.
inline constexpr std::int64_t kSchemaVersion = 1;

/// The contents of `pawl_meta`.
struct Meta {
  std::int64_t schema = 0;
  std::string incarnation;
  std::int64_t epoch = 0;
  Seq high = 0;     ///< numbers up to this one have been used, even if the log does not contain them
  Seq flushed = 0;  ///< heads are up to date up to this entry; later entries are replayed from the log
  Seq horizon = 0;
  Time last_at{};
};

enum class Access : std::uint8_t { owner, reader };

/// The kind of file at a path.
enum class FileKind : std::uint8_t { empty, pawl };

/// Default time for which a connection waits for a lock of another program.
inline constexpr Duration kLockWait = std::chrono::seconds(5);

/// Settings of one connection.
Result<void> prepare_connection(Database& db, Access access, Duration lock_wait = kLockWait);

/// Errors: `store_corrupt` (no database), `invalid_argument` (a database of another program), `store_newer`.
Result<FileKind> identify(Database& db);

/// Switches the file to WAL mode; a new file also gets the settings that its first page contains. Errors:
/// those of `identify`; `store_io` if the file system does not support it.
Result<void> enter_wal(Database& db);

/// Migrates the file to `kSchemaVersion` in one transaction, after `enter_wal`; a new file gets
/// `incarnation`.
Result<void> migrate(Database& db, const std::string& incarnation);

Result<Meta> read_meta(Database& db);
Result<void> write_meta(Database& db, std::string_view name, std::int64_t value);

/// 32 random hexadecimal digits from the VFS, so that a simulated VFS determines them.
std::string make_incarnation(const std::string& vfs);

/// Whether a name is one of Pawl's own tables.
bool is_own_table(std::string_view name);

}  // namespace pawl::sqlite
