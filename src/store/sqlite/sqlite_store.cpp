// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/sqlite_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "store/sqlite/schema.hpp"

namespace pawl::sqlite {
namespace {

/// Connections of one kind.
constexpr std::size_t kReaders = 4;

/// Moves the WAL into the database file. A reader of an old snapshot may prevent a part of it; then the sync
/// of the next commit has to suffice.
Result<void> rewrite_wal(Database& db, Duration lock_wait) {
  sqlite3_busy_timeout(db.get(), 0);
  const int code = sqlite3_wal_checkpoint_v2(db.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  PAWL_CHECK(prepare_connection(db, Access::owner, lock_wait));
  if (code == SQLITE_OK || code == SQLITE_BUSY) return {};
  return fail(db.error(code, "recovering the WAL"));
}

sqlite3_file* file_of(Database& db, int which) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db.get(), "main", which, &file);
  return file == nullptr || file->pMethods == nullptr ? nullptr : file;
}

std::int64_t size_of(sqlite3_file* file) {
  sqlite3_int64 size = 0;
  return file != nullptr && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : 0;
}

/// By how much opening can enlarge the files: by the pages that are in the WAL only, and a little for the
/// commit of the epoch and the index of the WAL.
std::int64_t space_needed(Database& db) {
  constexpr std::int64_t kMargin = 64 << 10;
  const auto pages = db.integer("PRAGMA page_count");
  const auto page_size = db.integer("PRAGMA page_size");
  if (!pages || !page_size) return kMargin + size_of(file_of(db, SQLITE_FCNTL_JOURNAL_POINTER));
  const auto grows = *pages * *page_size - size_of(file_of(db, SQLITE_FCNTL_FILE_POINTER));
  return kMargin + std::max<std::int64_t>(grows, 0);
}

/// The bytes that this process may still use on the device of the database; nothing if unknown.
std::optional<std::int64_t> space_left(Database& db, const SqliteOptions& options) {
  sqlite3_int64 left = 0;
  if (sqlite3_file_control(db.get(), "main", kSpaceLeft, &left) == SQLITE_OK) return left;
  const auto parent = std::filesystem::path(options.path).parent_path();
  std::error_code failed;
  const auto space = std::filesystem::space(parent.empty() ? "." : parent, failed);
  if (failed || !options.vfs.empty()) return std::nullopt;
  return static_cast<std::int64_t>(space.available);
}

}  // namespace

SqliteStore::SqliteStore(SqliteOptions options)
    : options_(std::move(options)),
      checkpointer_(status_),
      writer_(status_, checkpointer_, options_),
      lookups_(kReaders, [this] { return Reader::open(options_); }),
      ranges_(kReaders, [this] { return Reader::open(options_); }),
      queries_(kReaders, [this] { return Reader::open(options_); }) {
  if (!options_.now) {
    options_.now = [] { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); };
  }
}

SqliteStore::~SqliteStore() {
  // Closing only saves the next opening some replaying; if it fails, the log still has everything.
  static_cast<void>(writer_.close());
  // The last connection cleans up.
  lock_.release_database();
}

Result<void> SqliteStore::open() {
  if (options_.path.empty() || options_.path == ":memory:") {
    return fail(Code::invalid_argument, "a store needs the path of a file");
  }
  if (options_.flush_every < 1) {
    return fail(Code::invalid_argument,
                fmt::format("flush_every is {}, it must be positive", options_.flush_every));
  }
  PAWL_CHECK(check_query_limits(options_.query_limits));
  return options_.read_only ? open_reader() : open_owner();
}

Result<StoreInfo> SqliteStore::facts(Database& db, const Meta& meta) const {
  StoreInfo info{.incarnation = meta.incarnation, .epoch = meta.epoch, .horizon = meta.horizon};
  PAWL_TRY(auto newest, db.prepare("SELECT seq, at FROM log ORDER BY seq DESC LIMIT 1"));
  PAWL_TRY(const bool found, newest.row());
  info.last = std::max(meta.horizon, found ? newest.integer(0) : 0);
  info.last_at = std::max(meta.last_at, found ? newest.time(1) : Time{});
  info.read_only = options_.read_only;
  return info;
}

Result<void> SqliteStore::open_owner() {
  const int flags = SQLITE_OPEN_READWRITE | (options_.create ? SQLITE_OPEN_CREATE : 0);
  PAWL_TRY(auto db, Database::open(options_.path, flags, options_.vfs));
  db.leave_wal(true);  // until opening has succeeded
  PAWL_TRY(lock_, OwnerLock::take(options_.path, options_.vfs));
  auto meta = become_owner(db);
  if (!meta) return fail(cannot_open(db, std::move(meta).error()));
  db.leave_wal(false);
  PAWL_TRY(auto info, facts(db, *meta));
  const Seq next = std::max({info.last, meta->high, meta->horizon}) + 1;
  status_.set(std::move(info));
  PAWL_CHECK(checkpointer_.open(options_));
  PAWL_CHECK(writer_.open(std::move(db), next, meta->flushed));
  return batch_entries_.attach(writer_.database());
}

Result<Meta> SqliteStore::become_owner(Database& db) {
  PAWL_CHECK(prepare_connection(db, Access::owner, options_.lock_wait));
  PAWL_CHECK(enter_wal(db));
  PAWL_CHECK(lock_.take_database(options_.now()));
  PAWL_CHECK(migrate(db, make_incarnation(options_.vfs)));
  // SQLite has recovered the WAL of an owner that died, but nothing says that what it found had been synced:
  // the process may have died between write and sync, or because a sync had failed, after which the kernel
  // takes lost pages for clean. So the content is written into the database file once more and synced there,
  // and the new epoch is committed with a sync of its own, before anything is served.
  PAWL_CHECK(rewrite_wal(db, options_.lock_wait));
  PAWL_TRY(auto meta, read_meta(db));
  PAWL_CHECK(write_meta(db, "epoch", ++meta.epoch));
  return meta;
}

/// Adds to the error what the user can do.
Error SqliteStore::cannot_open(Database& db, Error cause) const {
  if (cause.code() == Code::rolled_back) {
    return Error(
        Code::store_locked,
        fmt::format("another program has been writing it for longer than {}; end its transaction, or "
                    "stop it",
                    to_string(options_.lock_wait)),
        {{"path", options_.path}});
  }
  const auto left = space_left(db, options_);
  const auto needed = space_needed(db);
  // SQLite does not say why the WAL's index could not be made larger.
  const bool is_full =
      cause.code() == Code::disk_full ||
      (cause.field("sqlite_code") == std::to_string(SQLITE_IOERR_SHMSIZE) && left && *left < needed);
  if (!is_full) return cause;
  const auto available = left ? std::to_string(*left) : "unknown";
  return Error(Code::disk_full,
               fmt::format("{} bytes are needed on its device, to write down what the last owner left in "
                           "'{}-wal', and {} are available; make space there. Nothing is lost",
                           needed, options_.path, available),
               {{"path", options_.path}, {"needed", std::to_string(needed)}, {"available", available}});
}

Result<void> SqliteStore::open_reader() {
  PAWL_TRY(auto db, Database::open(options_.path, SQLITE_OPEN_READONLY, options_.vfs));
  PAWL_CHECK(prepare_connection(db, Access::reader));
  PAWL_TRY(const auto kind, identify(db));
  if (kind == FileKind::empty)
    return fail(Code::invalid_argument, fmt::format("'{}' contains no store", options_.path));
  PAWL_TRY(const auto meta, read_meta(db));
  PAWL_TRY(auto info, facts(db, meta));
  status_.set(std::move(info));
  return {};
}

Result<Seq> SqliteStore::apply(const Write& write) { return writer_.apply(write); }
Result<void> SqliteStore::put(std::span<const Ephemeral> values) { return writer_.put(values); }
Result<void> SqliteStore::commit() { return writer_.commit(); }
void SqliteStore::discard() { writer_.discard(); }
bool SqliteStore::wants_help() const { return writer_.wants_help(); }
void SqliteStore::help() { writer_.help(); }
Result<void> SqliteStore::checkpoint() { return checkpointer_.run(); }
Result<void> SqliteStore::execute(std::span<const Sql> statements) { return writer_.execute(statements); }

Result<void> SqliteStore::load(const std::function<void(const StoredHead&)>& visit) {
  std::int64_t rows = 0;
  PAWL_CHECK(reading(ranges_, [&](Reader& reader) {
    return reader.entries().load([&](const StoredHead& head) {
      ++rows;
      visit(head);
    });
  }));
  if (!options_.read_only) writer_.expect_rows(rows);
  return {};
}

Result<std::optional<Entry>> SqliteStore::head_entry(const InstanceId& id, Seq seq) {
  return reading(lookups_, [&](Reader& reader) { return reader.entries().head_entry(id, seq); });
}

Result<std::vector<Entry>> SqliteStore::history(const InstanceId& id, Seq head, Seq before,
                                                std::size_t limit) {
  return reading(ranges_, [&](Reader& reader) { return reader.entries().history(id, head, before, limit); });
}

Result<std::vector<Entry>> SqliteStore::feed(Seq after, std::size_t limit) {
  return reading(ranges_, [&](Reader& reader) { return reader.entries().feed(after, limit); });
}

Result<std::optional<StoredRequest>> SqliteStore::find_request(const std::array<std::uint8_t, 16>& id) {
  if (writer_.batch_is_mine()) {
    PAWL_CHECK(status_.usable());
    writer_.settle();
    batch_entries_.forget_machines();
    return batch_entries_.find_request(id);
  }
  return reading(lookups_, [&](Reader& reader) { return reader.entries().find_request(id); });
}

Result<std::vector<Ephemeral>> SqliteStore::ephemerals(const InstanceId& id) {
  return reading(lookups_, [&](Reader& reader) { return reader.entries().ephemerals(id); });
}

Result<Seq> SqliteStore::seq_before(Time time) {
  return reading(lookups_, [&](Reader& reader) { return reader.entries().seq_before(time); });
}

Result<std::vector<std::vector<SqlValue>>> SqliteStore::query(const Sql& statement,
                                                              const std::stop_token& stop) {
  PAWL_CHECK(status_.usable());
  QueryWatch watch(options_.query_limits, closing_.get_token(), stop);
  PAWL_TRY(auto reader, queries_.lease(watch));
  watch.begin();
  return reader->application().query(statement, watch, options_.query_limits);
}

}  // namespace pawl::sqlite

namespace pawl {

Result<std::unique_ptr<Store>> open_sqlite(SqliteOptions options) {
  const auto path = options.path;
  auto store = std::make_unique<sqlite::SqliteStore>(std::move(options));
  if (auto opened = store->open(); !opened) {
    return fail(std::move(opened).error().while_(fmt::format("opening the store '{}'", path)));
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace pawl
