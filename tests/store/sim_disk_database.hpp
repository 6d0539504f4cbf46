// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of the simulated disk share: SQLite connections, files without SQLite, and a ledger whose
/// audit tells what a crash has cost.

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "pawl/sim_disk.hpp"

namespace pawl::sim {

/// A SQLite connection to a database on the disk.
class Connection {
 public:
  explicit Connection(const Disk& disk, const std::string& name = "a.db") {
    opened_ = sqlite3_open_v2(name.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                              disk.vfs_name().c_str());
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { sqlite3_close(db_); }

  int opened() const { return opened_; }

  /// The primary result code.
  int run(const std::string& sql) { return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) & 0xff; }

  /// The rows' first columns as text; nothing where the statement fails.
  std::optional<std::vector<std::string>> rows(const std::string& sql) {
    std::vector<std::string> found;
    const auto add = [](void* into, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(values[0] == nullptr ? "" : values[0]);
      return 0;
    };
    const int result = sqlite3_exec(db_, sql.c_str(), add, &found, nullptr);
    return result == SQLITE_OK ? std::optional(found) : std::nullopt;
  }

  std::string value(const std::string& sql) {
    const auto found = rows(sql);
    if (!found) return std::string("failed: ") + sqlite3_errmsg(db_);
    return found->empty() ? "nothing" : found->front();
  }

  sqlite3* get() { return db_; }

 private:
  sqlite3* db_ = nullptr;
  int opened_ = SQLITE_OK;
};

/// A file on the disk, without SQLite between.
class RawFile {
 public:
  explicit RawFile(const Disk& disk, std::string name = "f", int kind = SQLITE_OPEN_MAIN_DB)
      : vfs_(sqlite3_vfs_find(disk.vfs_name().c_str())),
        name_(std::move(name)),
        space_(std::make_unique<std::uint64_t[]>(static_cast<std::size_t>(vfs_->szOsFile) / 8 + 1)) {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    opened_ = vfs_->xOpen(vfs_, name_.c_str(), file(), kFlags | kind, nullptr);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() {
    if (opened_ == SQLITE_OK) file()->pMethods->xClose(file());
  }

  int opened() const { return opened_; }
  int write(sqlite3_int64 offset, const std::string& bytes) {
    return file()->pMethods->xWrite(file(), bytes.data(), static_cast<int>(bytes.size()), offset);
  }
  int read(sqlite3_int64 offset, std::string& into) {
    return file()->pMethods->xRead(file(), into.data(), static_cast<int>(into.size()), offset);
  }
  int truncate(sqlite3_int64 size) { return file()->pMethods->xTruncate(file(), size); }
  int sync() { return file()->pMethods->xSync(file(), SQLITE_SYNC_NORMAL); }
  int lock(int level) { return file()->pMethods->xLock(file(), level); }
  int unlock(int level) { return file()->pMethods->xUnlock(file(), level); }

 private:
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(space_.get()); }

  sqlite3_vfs* vfs_;
  std::string name_;
  std::unique_ptr<std::uint64_t[]> space_;
  int opened_ = SQLITE_OK;
};

inline int remove_name(const Disk& disk, const std::string& name, bool sync_directory) {
  sqlite3_vfs* vfs = sqlite3_vfs_find(disk.vfs_name().c_str());
  return vfs->xDelete(vfs, name.c_str(), sync_directory ? 1 : 0);
}

/// How a ledger is written.
struct LedgerOptions {
  std::string journal_mode = "WAL";
  std::string synchronous = "FULL";
  int transactions = 12;
  int checkpoint_pages = 6;  ///< small, so that checkpoints and restarts of the WAL happen in a short run
};

/// What was acknowledged before the disk died; -1 when not even the table was.
struct Acknowledged {
  int transactions = -1;
};

/// Each transaction writes these rows, all or nothing.
constexpr int kRowsEach = 3;

/// Writes transactions 1, 2, … until the last one or the first failure.
inline Acknowledged write_ledger(Connection& db, const LedgerOptions& options = {}) {
  Acknowledged done;
  const std::string setup = "PRAGMA journal_mode=" + options.journal_mode +
                            "; PRAGMA synchronous=" + options.synchronous +
                            "; PRAGMA wal_autocheckpoint=" + std::to_string(options.checkpoint_pages) +
                            "; CREATE TABLE IF NOT EXISTS ledger(transaction_no INT, part INT, filling BLOB)";
  if (db.run(setup) != SQLITE_OK) return done;
  done.transactions = 0;
  for (int number = 1; number <= options.transactions; ++number) {
    std::string sql = "BEGIN IMMEDIATE;";
    for (int part = 0; part < kRowsEach; ++part) {
      sql += "INSERT INTO ledger VALUES(" + std::to_string(number) + "," + std::to_string(part) +
             ", zeroblob(" + std::to_string(700 + 900 * (number % 3)) + "));";
    }
    if (db.run(sql) != SQLITE_OK || db.run("COMMIT") != SQLITE_OK) return done;
    done.transactions = number;
  }
  return done;
}

/// What a restart finds.
struct Audit {
  std::string problem;    ///< empty: the database is sound and holds whole transactions 1 to `transactions`
  int transactions = -1;  ///< -1: there is no table
};

inline Audit audit_ledger(const Disk& disk) {
  Connection db(disk);
  Audit audit;
  if (const auto sound = db.value("PRAGMA integrity_check"); sound != "ok") {
    audit.problem = sound;
    return audit;
  }
  if (db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'ledger'") != "1") return audit;
  const auto whole =
      db.rows("SELECT transaction_no FROM ledger GROUP BY 1 HAVING count(DISTINCT part) = " +
              std::to_string(kRowsEach) + " AND count(*) = " + std::to_string(kRowsEach) + " ORDER BY 1");
  const auto all = db.rows("SELECT DISTINCT transaction_no FROM ledger ORDER BY 1");
  if (!whole || !all) {
    audit.problem = "the ledger cannot be read";
    return audit;
  }
  if (*whole != *all) audit.problem = "a transaction is there in part";
  audit.transactions = static_cast<int>(all->size());
  if (!all->empty() && all->back() != std::to_string(all->size())) audit.problem = "a transaction is missing";
  return audit;
}

}  // namespace pawl::sim
