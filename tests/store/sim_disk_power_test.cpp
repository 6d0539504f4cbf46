// SPDX-License-Identifier: Apache-2.0
// SQLite on the simulated disk through power cuts: what it promises holds, what it does not promise breaks.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/store/sim_disk_database.hpp"

namespace pawl::sim {
namespace {

constexpr Unsynced kPolicies[] = {Unsynced::keep_none, Unsynced::keep_all, Unsynced::random};

struct Outcome {
  Acknowledged acknowledged;
  Audit found;
  bool is_sound() const { return found.problem.empty(); }
  bool lost() const { return found.transactions < acknowledged.transactions; }
};

std::size_t syncs_of_a_whole_run(const LedgerOptions& options) {
  Disk disk{1};
  Connection db(disk);
  write_ledger(db, options);
  return disk.syncs();
}

/// Writes a ledger whose disk loses power at the nth sync, and opens it again.
Outcome cut_at(std::uint64_t seed, std::size_t nth, Moment moment, Unsynced unsynced,
               const LedgerOptions& options) {
  Disk disk{seed};
  Outcome outcome;
  disk.cut_at_sync(nth, moment, unsynced);
  {
    Connection db(disk);
    outcome.acknowledged = write_ledger(db, options);
  }
  EXPECT_TRUE(disk.is_off());
  disk.power_on();
  outcome.found = audit_ledger(disk);
  return outcome;
}

/// Writes a ledger and cuts the power without any regard to syncs.
Outcome cut_afterwards(std::uint64_t seed, Unsynced unsynced, const LedgerOptions& options) {
  Disk disk{seed};
  Connection db(disk);
  Outcome outcome;
  outcome.acknowledged = write_ledger(db, options);
  disk.power_cut(unsynced);
  outcome.found = audit_ledger(disk);
  return outcome;
}

/// Every boundary, every policy, several seeds for the random one.
template <class Check>
void at_every_sync(const LedgerOptions& options, const Check& check) {
  const std::size_t syncs = syncs_of_a_whole_run(options);
  ASSERT_GT(syncs, 10U);
  for (std::size_t nth = 1; nth <= syncs; ++nth) {
    for (const Moment moment : {Moment::before, Moment::after}) {
      for (const Unsynced unsynced : kPolicies) {
        const std::uint64_t seeds = unsynced == Unsynced::random ? 5 : 1;
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
          SCOPED_TRACE(testing::Message()
                       << "sync " << nth << (moment == Moment::before ? " before" : " after") << " policy "
                       << static_cast<int>(unsynced) << " seed " << seed);
          check(cut_at(nth * 1000 + seed, nth, moment, unsynced, options));
        }
      }
    }
  }
}

TEST(PowerLoss, InWalModeWhatWasAcknowledgedSurvivesACutAtEverySync) {
  at_every_sync({}, [](const Outcome& outcome) {
    EXPECT_EQ(outcome.found.problem, "");
    EXPECT_FALSE(outcome.lost()) << outcome.found.transactions << " of " << outcome.acknowledged.transactions;
  });
}

TEST(PowerLoss, WithARollbackJournalAndExtraSyncWhatWasAcknowledgedSurvivesACutAtEverySync) {
  at_every_sync({.journal_mode = "DELETE", .synchronous = "EXTRA", .transactions = 5},
                [](const Outcome& outcome) {
                  EXPECT_EQ(outcome.found.problem, "");
                  EXPECT_FALSE(outcome.lost());
                });
}

TEST(PowerLoss, ADeletedJournalMayComeBackAndUndoTheLastTransactionUnlessTheDirectoryIsSynced) {
  // SQLite documents this difference between FULL and EXTRA; a disk that ignored directories would hide it.
  const LedgerOptions options{.journal_mode = "DELETE", .synchronous = "FULL", .transactions = 5};
  const Outcome outcome = cut_afterwards(1, Unsynced::keep_none, options);
  EXPECT_EQ(outcome.found.problem, "");
  EXPECT_EQ(outcome.found.transactions, 4);
}

TEST(PowerLoss, ACutBetweenTwoSyncsKeepsWhatWasAcknowledged) {
  for (const Unsynced unsynced : kPolicies) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const Outcome outcome = cut_afterwards(seed, unsynced, {});
      ASSERT_EQ(outcome.found.problem, "") << "seed " << seed;
      ASSERT_EQ(outcome.found.transactions, 12) << "seed " << seed;
    }
  }
}

TEST(PowerLoss, WithSynchronousOffAcknowledgedTransactionsAreFoundMissing) {
  int lost = 0;
  int unsound = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Outcome outcome = cut_afterwards(seed, Unsynced::random, {.synchronous = "OFF"});
    lost += outcome.is_sound() && outcome.lost() ? 1 : 0;
    unsound += outcome.is_sound() ? 0 : 1;
  }
  EXPECT_GT(lost, 10);
  EXPECT_GT(unsound, 10) << "checkpoints without syncs must damage the database now and then";
}

TEST(PowerLoss, WithSynchronousOffNothingIsLeftWhenNothingUnsyncedIsKept) {
  EXPECT_EQ(cut_afterwards(1, Unsynced::keep_none, {.synchronous = "OFF"}).found.transactions, -1);
}

TEST(PowerLoss, ATornAndReorderedWalTailIsRecoveredToAPrefixOfTheTransactions) {
  int partly = 0;
  int damaged = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk{seed};
    Connection db(disk);
    // NORMAL syncs the WAL at checkpoints only, and there are none after the first transactions.
    ASSERT_EQ(write_ledger(db, {.transactions = 2}).transactions, 2);
    ASSERT_EQ(db.run("PRAGMA wal_checkpoint(TRUNCATE)"), SQLITE_OK);
    const LedgerOptions unsynced{.synchronous = "NORMAL", .transactions = 12, .checkpoint_pages = 0};
    ASSERT_EQ(db.run("DELETE FROM ledger"), SQLITE_OK);
    ASSERT_EQ(write_ledger(db, unsynced).transactions, 12);
    const std::string wal = disk.read_file("a.db-wal").value();

    disk.power_cut(Unsynced::random);
    const std::string left = disk.read_file("a.db-wal").value_or("");
    const Audit found = audit_ledger(disk);

    ASSERT_EQ(found.problem, "") << "seed " << seed;
    partly += found.transactions > 0 && found.transactions < 12 ? 1 : 0;
    damaged += wal.starts_with(left) ? 0 : 1;
  }
  EXPECT_GT(partly, 10) << "the cuts hit the middle of the tail";
  EXPECT_GT(damaged, 10) << "what is left of the WAL is more than cut short";
}

TEST(PowerLoss, AKilledProcessKeepsEverythingItWroteWithoutAnySync) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.synchronous = "OFF"}).transactions, 12);
  disk.process_kill();
  EXPECT_EQ(db.run("SELECT count(*) FROM ledger"), SQLITE_IOERR);
  const Audit found = audit_ledger(disk);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.transactions, 12);
}

TEST(PowerLoss, APowerCutAfterAKillStillLosesWhatWasNotSynced) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.synchronous = "OFF"}).transactions, 12);
  disk.process_kill();
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(audit_ledger(disk).transactions, -1);
}

TEST(PowerLoss, AKilledProcessLeavesAHotJournalThatTheNextOneRollsBack) {
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.journal_mode = "DELETE", .transactions = 3}).transactions, 3);
  ASSERT_EQ(db.run("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE ledger SET filling = zeroblob(9000)"),
            SQLITE_OK);
  disk.process_kill();
  const Audit found = audit_ledger(disk);
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.transactions, 3);
}

TEST(PowerLoss, OneRunForksAtEachOfItsSyncs) {
  struct Fork {
    DiskImage image;
    int acknowledged;
  };
  std::vector<Fork> forks;
  int acknowledged = 0;
  Disk disk{1};
  Connection db(disk);
  ASSERT_EQ(write_ledger(db, {.transactions = 0}).transactions, 0);
  disk.on_sync([&](const SyncPoint&) { forks.push_back({disk.snapshot(), acknowledged}); });
  for (int number = 1; number <= 6; ++number) {
    const std::string row = "INSERT INTO ledger VALUES(" + std::to_string(number) + ",";
    ASSERT_EQ(db.run("BEGIN;" + row + "0,1);" + row + "1,1);" + row + "2,1); COMMIT"), SQLITE_OK);
    acknowledged = number;
  }
  ASSERT_GE(forks.size(), 12U);
  for (std::size_t i = 0; i < forks.size(); ++i) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Disk fork{i * 100 + seed};
      fork.restore(forks[i].image);
      fork.power_cut(Unsynced::random);
      const Audit found = audit_ledger(fork);
      ASSERT_EQ(found.problem, "") << "fork " << i << " seed " << seed;
      ASSERT_GE(found.transactions, forks[i].acknowledged) << "fork " << i << " seed " << seed;
      ASSERT_LE(found.transactions, forks[i].acknowledged + 1) << "fork " << i << " seed " << seed;
    }
  }
  EXPECT_EQ(db.value("SELECT count(*) FROM ledger"), "18") << "the run itself noticed nothing";
}

TEST(PowerLoss, TheSameSeedLeavesTheSameBytes) {
  const auto left_by = [](std::uint64_t seed) {
    // SQLite draws the salts of the WAL from a generator of its own, the same for the whole process.
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 7, nullptr);
    Disk disk{seed};
    Connection db(disk);
    write_ledger(db, {.synchronous = "OFF"});
    disk.power_cut(Unsynced::random);
    std::map<std::string, std::string> bytes;
    for (const std::string& name : disk.files()) bytes[name] = disk.read_file(name).value();
    return bytes;
  };
  std::set<std::map<std::string, std::string>> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto left = left_by(seed);
    EXPECT_TRUE(left == left_by(seed)) << "seed " << seed;
    different.insert(left);
  }
  EXPECT_GT(different.size(), 5U) << "other seeds leave other bytes";
  sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 0, nullptr);
}

}  // namespace
}  // namespace pawl::sim
