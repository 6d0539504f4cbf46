// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pawl::sqlite {
namespace {

/// Migration n brings a file from schema n to n + 1. Released ones never change.
constexpr auto kMigrations = std::to_array<const char*>({
    R"sql(
CREATE TABLE pawl_meta(name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;
INSERT INTO pawl_meta VALUES('schema', 0), ('incarnation', ''), ('epoch', 0), ('high', 0), ('flushed', 0),
  ('horizon', 0), ('last_at', 0);
CREATE TABLE machines(number INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE log(
  seq INTEGER PRIMARY KEY NOT NULL,
  id BLOB NOT NULL,
  machine INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  version INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  prev INTEGER NOT NULL,
  at INTEGER NOT NULL,
  state TEXT NOT NULL,
  schema INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  event TEXT,
  payload TEXT,
  data TEXT,
  extra TEXT,
  key TEXT,
  partition TEXT,
  request BLOB,
  content INTEGER,
  members INTEGER
) STRICT;
CREATE UNIQUE INDEX log_request ON log(request) WHERE request IS NOT NULL;
CREATE TABLE heads(
  id BLOB PRIMARY KEY NOT NULL,
  machine INTEGER NOT NULL,
  key TEXT NOT NULL,
  partition TEXT,
  generation INTEGER NOT NULL,
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  has_extra INTEGER NOT NULL,
  kind INTEGER,
  prev INTEGER,
  schema INTEGER,
  event TEXT,
  payload TEXT,
  data TEXT,
  extra TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX heads_finished ON heads(seq) WHERE finished;
CREATE TABLE ephemeral(
  id BLOB NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY(id, name)
) STRICT, WITHOUT ROWID;
CREATE VIEW pawl_instances AS
WITH tail AS (
  SELECT id, max(seq) AS seq, max(key) AS key, max(CASE WHEN kind = 1 THEN at END) AS begun
  FROM log WHERE seq > (SELECT value FROM pawl_meta WHERE name = 'flushed') GROUP BY id
), newest AS (
  SELECT heads.id, max(heads.seq, coalesce(tail.seq, 0)) AS seq, heads.key,
    coalesce(tail.begun, heads.created_at) AS created_at
  FROM heads LEFT JOIN tail ON tail.id = heads.id
  UNION ALL
  SELECT id, seq, key, begun FROM tail WHERE id NOT IN (SELECT id FROM heads)
)
SELECT machines.name AS machine, newest.key, coalesce(log.state, heads.state) AS state,
  coalesce(log.generation, heads.generation) AS generation, coalesce(log.version, heads.version) AS version,
  coalesce(log.finished, heads.finished) AS finished,
  strftime('%Y-%m-%dT%H:%M:%SZ', newest.created_at / 1000000, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(log.at, heads.at) / 1000000, 'unixepoch') AS at,
  coalesce(log.data, heads.data) AS data, newest.seq, lower(hex(newest.id)) AS id
FROM newest LEFT JOIN log ON log.seq = newest.seq LEFT JOIN heads ON heads.id = newest.id
JOIN machines ON machines.number = coalesce(log.machine, heads.machine);
)sql",
});
static_assert(kMigrations.size() == kSchemaVersion);

constexpr auto kOwnTables =
    std::to_array<std::string_view>({"pawl_meta", "machines", "log", "heads", "ephemeral", "pawl_instances"});

/// WAL file size beyond which a restart truncates it.
constexpr std::int64_t kWalKeptBytes = std::int64_t{64} << 20;

}  // namespace

bool is_own_table(std::string_view name) {
  return std::ranges::any_of(kOwnTables, [&](std::string_view own) {
    return sqlite3_strnicmp(own.data(), std::string(name).c_str(), static_cast<int>(own.size()) + 1) == 0;
  });
}

Result<void> prepare_connection(Database& db, Access access, Duration lock_wait) {
  // The wait bridges the short times in which another program or a checkpoint holds a lock.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(lock_wait);
  sqlite3_busy_timeout(db.get(), static_cast<int>(wait.count()));
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  PAWL_CHECK(db.run(
      "PRAGMA foreign_keys=OFF; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0"));
  if (access == Access::reader) return db.run("PRAGMA query_only=ON");
  // FULL: the WAL is synced before a commit becomes visible, so readers see durable entries only. Checkpoints
  // run elsewhere. Deleted bytes are not overwritten and pages never leave the cache early: both cost much.
  return db.run(
      fmt::format("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA secure_delete=OFF; "
                  "PRAGMA cache_spill=OFF; PRAGMA journal_size_limit={}",
                  kWalKeptBytes));
}

Result<FileKind> identify(Database& db) {
  PAWL_TRY(const auto application, db.integer("PRAGMA application_id"));
  PAWL_TRY(const auto tables, db.integer("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && tables == 0) return FileKind::empty;
  const std::string path = sqlite3_db_filename(db.get(), "main");
  if (application != kApplicationId) {
    return fail(
        Code::invalid_argument,
        fmt::format("'{}' is a SQLite database of another program (application id {:#x} instead of {:#x})",
                    path, application, kApplicationId),
        {{"path", path}});
  }
  PAWL_TRY(const auto version, db.integer("SELECT value FROM pawl_meta WHERE name = 'schema'"));
  if (version > kSchemaVersion) {
    return fail(Code::store_newer,
                fmt::format("'{}' has schema {}, this program knows schemas up to {}; use a newer program",
                            path, version, kSchemaVersion),
                {{"path", path},
                 {"file_schema", std::to_string(version)},
                 {"known_schema", std::to_string(kSchemaVersion)}});
  }
  if (version < 1) return fail(Code::store_corrupt, fmt::format("'{}' has schema {}", path, version));
  return FileKind::pawl;
}

Result<void> enter_wal(Database& db) {
  PAWL_TRY(const auto kind, identify(db));
  // Both settings come before the first table.
  if (kind == FileKind::empty) PAWL_CHECK(db.run("PRAGMA auto_vacuum=INCREMENTAL"));
  PAWL_TRY(auto mode, db.prepare("PRAGMA journal_mode=WAL"));
  PAWL_CHECK(mode.row());
  if (mode.text(0) == "wal") return {};
  return fail(Code::store_io, fmt::format("'{}' cannot be used in WAL mode, which needs a local file system",
                                          sqlite3_db_filename(db.get(), "main")));
}

Result<void> migrate(Database& db, const std::string& incarnation) {
  PAWL_CHECK(enter_wal(db));
  PAWL_TRY(const auto kind, identify(db));
  std::int64_t version = 0;
  if (kind == FileKind::pawl) {
    PAWL_TRY(version, db.integer("SELECT value FROM pawl_meta WHERE name = 'schema'"));
  }
  if (version == kSchemaVersion) return {};
  std::string script = fmt::format("BEGIN IMMEDIATE; PRAGMA application_id={};", kApplicationId);
  for (auto next = version; next < kSchemaVersion; ++next)
    script += kMigrations.at(static_cast<std::size_t>(next));
  if (version == 0) {
    script += fmt::format("UPDATE pawl_meta SET value = '{}' WHERE name = 'incarnation';", incarnation);
  }
  script += fmt::format("UPDATE pawl_meta SET value = {} WHERE name = 'schema'; COMMIT", kSchemaVersion);
  auto done = db.run(script);
  if (!done && db.in_transaction()) PAWL_CHECK(db.run("ROLLBACK"));
  return done;
}

Result<Meta> read_meta(Database& db) {
  PAWL_TRY(auto rows, db.prepare("SELECT name, value FROM pawl_meta"));
  Meta meta;
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) break;
    const auto name = rows.text(0);
    if (name == "schema") meta.schema = rows.integer(1);
    if (name == "incarnation") meta.incarnation = rows.text(1);
    if (name == "epoch") meta.epoch = rows.integer(1);
    if (name == "high") meta.high = rows.integer(1);
    if (name == "flushed") meta.flushed = rows.integer(1);
    if (name == "horizon") meta.horizon = rows.integer(1);
    if (name == "last_at") meta.last_at = rows.time(1);
  }
  if (meta.incarnation.size() != 32) {
    return fail(Code::store_corrupt,
                fmt::format("pawl_meta: the incarnation '{}' is not 32 hexadecimal digits",
                            meta.incarnation.substr(0, 64)));
  }
  return meta;
}

Result<void> write_meta(Database& db, std::string_view name, std::int64_t value) {
  PAWL_TRY(auto update, db.prepare("UPDATE pawl_meta SET value = ?2 WHERE name = ?1"));
  update.bind_text(1, name);
  update.bind(2, value);
  return update.run();
}

std::string make_incarnation(const std::string& vfs) {
  auto* found = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  std::array<char, 16> bytes{};
  if (found != nullptr) found->xRandomness(found, static_cast<int>(bytes.size()), bytes.data());
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace pawl::sqlite
