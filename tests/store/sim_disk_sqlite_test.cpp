// SPDX-License-Identifier: Apache-2.0
// SQLite's connections side by side on the simulated disk: locks, shared memory, threads, faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/store/sim_disk_database.hpp"

namespace pawl::sim {
namespace {

TEST(SimDiskSqlite, FileLocksFollowSqlitesLadder) {
  Disk disk{1};
  RawFile a(disk);
  RawFile b(disk);
  RawFile c(disk);
  EXPECT_EQ(a.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
  EXPECT_EQ(b.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
  EXPECT_EQ(a.lock(SQLITE_LOCK_RESERVED), SQLITE_OK);
  EXPECT_EQ(b.lock(SQLITE_LOCK_RESERVED), SQLITE_BUSY) << "one writer";
  EXPECT_EQ(c.lock(SQLITE_LOCK_SHARED), SQLITE_OK) << "readers beside a writer that has not begun to write";
  EXPECT_EQ(a.lock(SQLITE_LOCK_EXCLUSIVE), SQLITE_BUSY) << "while others read";
  EXPECT_EQ(c.unlock(SQLITE_LOCK_NONE), SQLITE_OK);
  EXPECT_EQ(c.lock(SQLITE_LOCK_SHARED), SQLITE_BUSY) << "no new reader while a writer waits";
  EXPECT_EQ(b.unlock(SQLITE_LOCK_NONE), SQLITE_OK);
  EXPECT_EQ(a.lock(SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
  EXPECT_EQ(a.unlock(SQLITE_LOCK_SHARED), SQLITE_OK);
  EXPECT_EQ(c.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
}

TEST(SimDiskSqlite, ACrashReleasesLocks) {
  Disk disk{1};
  RawFile before(disk);
  ASSERT_EQ(before.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
  ASSERT_EQ(before.lock(SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
  disk.process_kill();
  RawFile after(disk);
  EXPECT_EQ(after.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
  EXPECT_EQ(after.lock(SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
}

TEST(SimDiskSqlite, ClosingAFileReleasesItsLock) {
  Disk disk{1};
  RawFile other(disk);
  {
    RawFile file(disk);
    ASSERT_EQ(file.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
    ASSERT_EQ(file.lock(SQLITE_LOCK_EXCLUSIVE), SQLITE_OK);
    ASSERT_EQ(other.lock(SQLITE_LOCK_SHARED), SQLITE_BUSY);
  }
  EXPECT_EQ(other.lock(SQLITE_LOCK_SHARED), SQLITE_OK);
}

TEST(SimDiskSqlite, InWalModeAReaderKeepsItsViewWhileAnotherConnectionWrites) {
  Disk disk{1};
  Connection writer(disk);
  Connection reader(disk);
  ASSERT_EQ(writer.run("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1)"), SQLITE_OK);
  ASSERT_EQ(reader.run("BEGIN"), SQLITE_OK);
  EXPECT_EQ(reader.value("SELECT count(*) FROM t"), "1");
  ASSERT_EQ(writer.run("INSERT INTO t VALUES(2)"), SQLITE_OK);
  EXPECT_EQ(reader.value("SELECT count(*) FROM t"), "1");
  EXPECT_EQ(writer.value("PRAGMA wal_checkpoint(TRUNCATE)"), "1") << "busy: the reader needs the WAL";
  ASSERT_EQ(reader.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(reader.value("SELECT count(*) FROM t"), "2");
  EXPECT_EQ(writer.value("PRAGMA wal_checkpoint(TRUNCATE)"), "0");
  EXPECT_EQ(disk.read_file("a.db-wal"), "");
}

TEST(SimDiskSqlite, InWalModeThereIsOneWriter) {
  Disk disk{1};
  Connection one(disk);
  Connection two(disk);
  ASSERT_EQ(one.run("PRAGMA journal_mode=WAL; CREATE TABLE t(x); BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_EQ(two.run("BEGIN IMMEDIATE"), SQLITE_BUSY);
  ASSERT_EQ(one.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(two.run("BEGIN IMMEDIATE"), SQLITE_OK);
}

TEST(SimDiskSqlite, AnExclusiveOwnerKeepsOthersOutUntilItIsGone) {
  Disk disk{1};
  auto owner = std::make_unique<Connection>(disk);
  ASSERT_EQ(owner->run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; CREATE TABLE t(x)"),
            SQLITE_OK);
  Connection other(disk);
  EXPECT_EQ(other.run("SELECT * FROM t"), SQLITE_BUSY);
  owner.reset();
  EXPECT_EQ(other.run("SELECT * FROM t"), SQLITE_OK);
}

TEST(SimDiskSqlite, ClosingTheLastConnectionRemovesTheWalUnlessItIsToPersist) {
  for (int persist : {0, 1}) {
    Disk disk{1};
    {
      Connection db(disk);
      ASSERT_EQ(db.run("PRAGMA journal_mode=WAL; CREATE TABLE t(x)"), SQLITE_OK);
      ASSERT_EQ(sqlite3_file_control(db.get(), "main", SQLITE_FCNTL_PERSIST_WAL, &persist), SQLITE_OK);
    }
    EXPECT_EQ(disk.read_file("a.db-wal").has_value(), persist == 1);
  }
}

TEST(SimDiskSqlite, TemporaryFilesLeaveNoName) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(db.run("PRAGMA temp_store=FILE; PRAGMA temp.cache_size=1; CREATE TEMP TABLE t(x);"
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                   "INSERT INTO t SELECT hex(randomblob(200)) FROM n"),
            SQLITE_OK);
  EXPECT_EQ(db.value("SELECT count(*) FROM (SELECT x FROM t ORDER BY x)"), "500");
  EXPECT_GT(disk.writes(), 10U);
  EXPECT_THAT(disk.files(), testing::ElementsAre("a.db"));
}

TEST(SimDiskSqlite, TimeStandsStill) {
  Disk disk{1};
  Connection db(disk);
  EXPECT_EQ(db.value("SELECT datetime('now')"), "2000-01-01 00:00:00");
}

TEST(SimDiskSqlite, ACommitWhoseSyncFailsIsNotAcknowledged) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.transactions = 3}).transactions, 3);
  disk.fail_next({.on = Operation::sync, .suffix = "-wal"});
  EXPECT_EQ(db.run("DELETE FROM ledger"), SQLITE_IOERR);
  disk.power_cut(Unsynced::keep_none);
  const Audit found = audit_ledger(disk);
  EXPECT_EQ(found.problem, "");
  EXPECT_TRUE(found.transactions == 3 || found.transactions == 0) << "whole or not at all";
}

TEST(SimDiskSqlite, AFullDiskRefusesTheTransactionAndHarmsNothing) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.transactions = 3}).transactions, 3);
  disk.set_capacity(disk.read_file("a.db")->size() + disk.read_file("a.db-wal")->size() + 5000);
  EXPECT_EQ(db.run("INSERT INTO ledger VALUES(4, 0, zeroblob(100000))"), SQLITE_FULL);
  EXPECT_EQ(db.value("SELECT max(transaction_no) FROM ledger"), "3");
  disk.set_capacity(std::nullopt);
  EXPECT_EQ(db.run("INSERT INTO ledger VALUES(4, 0, 0),(4, 1, 0),(4, 2, 0)"), SQLITE_OK);
  disk.power_cut(Unsynced::random);
  const Audit found = audit_ledger(disk);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.transactions, 4);
}

TEST(SimDiskSqlite, EverySingleFaultLeavesWholeTransactions) {
  for (const Operation on : {Operation::open, Operation::read, Operation::write, Operation::truncate,
                             Operation::sync, Operation::remove}) {
    for (const Failure with : {Failure::io, Failure::full}) {
      for (std::size_t nth = 1; nth <= 40; ++nth) {
        SCOPED_TRACE(testing::Message() << "operation " << static_cast<int>(on) << " nth " << nth);
        Disk disk{nth};
        disk.fail_next({.on = on, .nth = nth, .with = with});
        Acknowledged acknowledged;
        {
          Connection db(disk);
          acknowledged = write_ledger(db, {.transactions = 8});
        }
        disk.clear_faults();
        disk.power_cut(Unsynced::random);
        const Audit found = audit_ledger(disk);
        ASSERT_EQ(found.problem, "");
        ASSERT_GE(found.transactions, acknowledged.transactions);
      }
    }
  }
}

TEST(SimDiskSqlite, AFlippedBitInTheWalEndsItAtTheTransactionBefore) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.transactions = 6, .checkpoint_pages = 0}).transactions, 6);
  const std::size_t size = disk.read_file("a.db-wal")->size();
  disk.power_cut(Unsynced::keep_none);
  ASSERT_TRUE(disk.flip("a.db-wal", size / 2));
  const Audit found = audit_ledger(disk);
  EXPECT_EQ(found.problem, "");
  EXPECT_GT(found.transactions, 0);
  EXPECT_LT(found.transactions, 6);
}

TEST(SimDiskSqlite, WriterReaderAndCheckpointerRunOnThreadsOfTheirOwn) {
  Disk disk{1};
  constexpr int kTransactions = 60;
  {
    Connection setup(disk);
    ASSERT_EQ(write_ledger(setup, {.transactions = 0}).transactions, 0);
  }
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    Connection db(disk);
    sqlite3_busy_timeout(db.get(), 60'000);
    EXPECT_EQ(write_ledger(db, {.transactions = kTransactions, .checkpoint_pages = 0}).transactions,
              kTransactions);
    done = true;
  });
  std::jthread checkpointer([&] {
    Connection db(disk);
    while (!done) EXPECT_EQ(db.run("PRAGMA wal_checkpoint(PASSIVE)"), SQLITE_OK);
  });
  Connection reader(disk);
  sqlite3_busy_timeout(reader.get(), 60'000);
  int last = 0;
  while (!done) {
    const int rows = std::stoi(reader.value("SELECT count(*) FROM ledger"));
    EXPECT_EQ(rows % kRowsEach, 0) << "a part of a transaction is visible";
    EXPECT_GE(rows, last);
    last = rows;
  }
  writer.join();
  checkpointer.join();
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(audit_ledger(disk).transactions, kTransactions);
}

TEST(SimDiskSqlite, APowerCutFromAnotherThreadKeepsWhatWasAcknowledged) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Disk disk{seed};
    std::atomic<int> acknowledged = -1;
    {
      std::jthread writer([&] {
        Connection db(disk);
        acknowledged = write_ledger(db, {.transactions = 1'000'000}).transactions;
      });
      while (disk.syncs() < 20 + seed) std::this_thread::yield();
      disk.power_cut(Unsynced::random);
    }
    const Audit found = audit_ledger(disk);
    ASSERT_EQ(found.problem, "") << "seed " << seed;
    ASSERT_GE(found.transactions, acknowledged) << "seed " << seed;
  }
}

}  // namespace
}  // namespace pawl::sim
