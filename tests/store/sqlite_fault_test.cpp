// SPDX-License-Identifier: Apache-2.0
// SQLite stores on a failing disk: full, broken while writing, syncing or reading.
#include "pawl/sim_disk.hpp"
#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

class SqliteFault : public testing::Test {
 protected:
  std::unique_ptr<Store> open() { return try_open().value(); }
  Result<std::unique_ptr<Store>> try_open() {
    return open_sqlite({.path = "pawl.db", .flush_every = 4, .vfs = disk_.vfs_name()});
  }
  /// A full disk has room for nothing more.
  void fill_disk() { disk_.set_capacity(used()); }
  std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const auto& name : disk_.files()) bytes += disk_.read_file(name)->size();
    return bytes;
  }
  /// Whether every call says that the store is poisoned.
  static void expect_poisoned(Store& store) {
    EXPECT_EQ(code(join(store, created("x"))), Code::store_poisoned);
    EXPECT_EQ(code(store.commit()), Code::store_poisoned);
    EXPECT_EQ(code(store.put(std::vector{Ephemeral{}})), Code::store_poisoned);
    EXPECT_EQ(code(store.feed(0, 1)), Code::store_poisoned);
    EXPECT_EQ(code(store.load([](const StoredHead&) {})), Code::store_poisoned);
    EXPECT_EQ(code(store.head_entry(created("x").id, 1)), Code::store_poisoned);
    EXPECT_EQ(code(store.history(created("x").id, 1, 0, 1)), Code::store_poisoned);
    EXPECT_EQ(code(store.find_request(request(1).id)), Code::store_poisoned);
    EXPECT_EQ(code(store.ephemerals(created("x").id)), Code::store_poisoned);
    EXPECT_EQ(code(store.retain(1)), Code::store_poisoned);
    EXPECT_EQ(code(store.checkpoint()), Code::store_poisoned);
    EXPECT_EQ(code(store.check()), Code::store_poisoned);
    EXPECT_EQ(code(store.query(plain("SELECT 1"))), Code::store_poisoned);
    EXPECT_EQ(code(store.execute(std::vector{plain("CREATE TABLE t(x)")})), Code::store_poisoned);
    store.discard();
  }

  sim::Disk disk_{7};
};

TEST_F(SqliteFault, AFullDiskRefusesTheBatchAndTheStoreGoesOn) {
  auto store = open();
  fill(*store, 3);
  fill_disk();
  auto large = created("large");
  large.data = std::string(100'000, 'x');
  ASSERT_TRUE(join(*store, large));
  EXPECT_EQ(code(store->commit()), Code::disk_full);
  EXPECT_EQ(store->feed(0, 10).value().size(), 3U);
  disk_.set_capacity(std::nullopt);
  EXPECT_EQ(write(*store, created("after")), 5) << "the number of the lost entry is not used again";
  EXPECT_EQ(store->info().last, 5);
  store.reset();
  store = open();
  EXPECT_EQ(load_all(*store).size(), 4U);
}

TEST_F(SqliteFault, HeadsThatAFullDiskKeptBackAreWrittenLater) {
  auto store = open();
  fill(*store, 4);
  fill_disk();
  // The fourth entry made a round of heads due: it fails together with this batch.
  auto large = created("large");
  large.data = std::string(100'000, 'x');
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(join(*store, large));
    EXPECT_EQ(code(store->commit()), Code::disk_full);
    EXPECT_EQ(code(store->retain(2)), Code::disk_full);
  }
  disk_.set_capacity(std::nullopt);
  for (int i = 0; i < 6; ++i) write(*store, created("more" + std::to_string(i)));
  while (!store->retain(5).value()) {}
  disk_.process_kill();
  store.reset();
  store = open();
  EXPECT_EQ(load_all(*store).size(), 10U);
  EXPECT_EQ(problems(*store), "");
}

TEST_F(SqliteFault, OpeningOnAFullDiskSaysHowMuchSpaceItNeedsAndWorksOnceThatIsThere) {
  std::vector<Draft> acknowledged;
  {
    auto store = open();
    acknowledged = fill(*store, 300);
    disk_.process_kill();
  }
  fill_disk();
  const auto refused = try_open();
  ASSERT_EQ(code(refused), Code::disk_full);
  const auto& error = refused.error();
  EXPECT_EQ(error.field("path"), "pawl.db");
  EXPECT_NE(error.message().find(std::string(error.field("needed"))), std::string::npos) << error.to_string();
  EXPECT_EQ(error.field("available"), "0");
  const auto needed = std::stoull(std::string(error.field("needed")));
  EXPECT_LT(needed, 400'000U) << "about what the log has grown by";
  disk_.set_capacity(used() + needed);
  const auto store = open();
  ASSERT_EQ(store->feed(0, 1000).value().size(), acknowledged.size());
  for (std::size_t i = 0; i < acknowledged.size(); ++i) {
    const auto seq = static_cast<Seq>(i) + 1;
    EXPECT_EQ(store->head_entry(acknowledged[i].id, seq).value(), acknowledged[i].stored(seq));
  }
  EXPECT_EQ(problems(*store), "");
}

TEST_F(SqliteFault, OpeningOnAFullDiskWorksWhereTheLogFitsIntoTheFile) {
  {
    auto store = open();
    fill(*store, 100);
    ASSERT_TRUE(store->checkpoint());
    // As many pages as the file has already: these are written over.
    ASSERT_TRUE(store->put(std::vector{Ephemeral{.id = created("k1").id, .name = "n", .value = "1"}}));
    ASSERT_TRUE(store->commit());
    disk_.process_kill();
  }
  fill_disk();
  const auto store = open();
  EXPECT_EQ(store->feed(0, 1000).value().size(), 100U);
}

TEST_F(SqliteFault, AFailedSyncPoisonsTheStore) {
  auto store = open();
  fill(*store, 2);
  disk_.fail_next({.on = sim::Operation::sync, .suffix = "-wal"});
  ASSERT_TRUE(join(*store, created("doubtful")));
  const auto failed = store->commit();
  ASSERT_EQ(code(failed), Code::store_io);
  EXPECT_FALSE(failed.error().field("sqlite_code").empty());
  const auto syncs = disk_.syncs();
  expect_poisoned(*store);
  store.reset();
  EXPECT_EQ(disk_.syncs(), syncs) << "a failed sync is never tried again, also not by closing";
}

TEST_F(SqliteFault, WhatWasDoubtfulIsDurableOrGoneAfterReopening) {
  for (const auto failed_sync : {sim::FailedSync::loses_writes, sim::FailedSync::keeps_writes}) {
    sim::Disk disk{11};
    const SqliteOptions options{.path = "pawl.db", .vfs = disk.vfs_name()};
    auto store = open_sqlite(options).value();
    fill(*store, 2);
    disk.fail_next({.on = sim::Operation::sync, .suffix = "-wal", .failed_sync = failed_sync});
    ASSERT_TRUE(join(*store, created("doubtful")));
    ASSERT_EQ(code(store->commit()), Code::store_io);
    store.reset();
    // Whatever the reopened store shows must outlive a power cut right after, and so must what follows it.
    store = open_sqlite(options).value();
    const auto shown = store->feed(0, 10).value();
    write(*store, created("after"));
    disk.power_cut(sim::Unsynced::keep_none);
    store.reset();
    store = open_sqlite(options).value();
    const auto kept = store->feed(0, 10).value();
    ASSERT_EQ(kept.size(), shown.size() + 1);
    EXPECT_TRUE(std::equal(shown.begin(), shown.end(), kept.begin()));
  }
}

TEST_F(SqliteFault, AFailedWriteOfTheBatchPoisonsTheStore) {
  auto store = open();
  fill(*store, 2);
  disk_.fail_next({.on = sim::Operation::write, .suffix = "-wal"});
  ASSERT_TRUE(join(*store, created("doubtful")));
  EXPECT_EQ(code(store->commit()), Code::store_io);
  expect_poisoned(*store);
  store.reset();
  store = open();
  EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
}

TEST_F(SqliteFault, AFailedCheckpointPoisonsTheStoreButLosesNothing) {
  auto store = open();
  fill(*store, 20);
  disk_.fail_next({.on = sim::Operation::sync, .suffix = "pawl.db"});
  EXPECT_EQ(code(store->checkpoint()), Code::store_io);
  expect_poisoned(*store);
  store.reset();
  store = open();
  EXPECT_EQ(store->feed(0, 100).value().size(), 20U);
}

TEST_F(SqliteFault, AFullDiskRefusesACheckpointAndTheStoreGoesOn) {
  auto store = open();
  fill(*store, 200);
  fill_disk();
  const auto refused = store->checkpoint();
  EXPECT_EQ(code(refused), Code::disk_full);
  disk_.set_capacity(std::nullopt);
  EXPECT_TRUE(store->checkpoint());
  EXPECT_EQ(write(*store, created("after")), 201);
}

TEST_F(SqliteFault, EverySyncWhileOpeningMayFailAndTheNextOpeningWorks) {
  {
    auto store = open();
    fill(*store, 5);
    disk_.process_kill();
  }
  int failures = 0;
  for (std::size_t nth = 1; nth <= 20; ++nth) {
    disk_.fail_next({.on = sim::Operation::sync, .nth = nth});
    const auto opened = try_open();
    if (!opened) ++failures;
    disk_.process_kill();
    disk_.clear_faults();
    auto store = open();
    ASSERT_EQ(store->feed(0, 10).value().size(), 5U);
    disk_.process_kill();
  }
  EXPECT_GT(failures, 0);
}

TEST_F(SqliteFault, EveryReadMayFailAndNothingIsMadeUp) {
  {
    auto store = open();
    fill(*store, 50);
  }
  int failures = 0;
  for (std::size_t nth = 1; nth <= 40; ++nth) {
    disk_.fail_next({.on = sim::Operation::read, .nth = nth});
    if (const auto opened = try_open()) {
      std::size_t heads = 0;
      const auto loaded = (*opened)->load([&](const StoredHead&) { ++heads; });
      if (!loaded) ++failures;
      EXPECT_TRUE(!loaded || heads == 50);
    } else {
      ++failures;
      EXPECT_NE(code(opened), Code::invalid_argument) << opened.error().to_string();
    }
    disk_.clear_faults();
  }
  EXPECT_GT(failures, 0);
}

TEST_F(SqliteFault, APowerCutAtAnySyncLeavesWhatWasAcknowledged) {
  const auto image = disk_.snapshot();
  for (const auto moment : {sim::Moment::before, sim::Moment::after}) {
    for (std::size_t nth = 1; nth <= 60; ++nth) {
      disk_.restore(image);
      disk_.cut_at_sync(nth, moment, sim::Unsynced::random);
      std::vector<Entry> acknowledged;
      if (auto store = try_open()) {
        for (int i = 0; i < 12 && !disk_.is_off(); ++i) {
          const auto draft = created("k" + std::to_string(i));
          const auto seq = join(**store, draft);
          if (seq && (*store)->commit()) acknowledged.push_back(draft.stored(*seq));
          if (i == 6) static_cast<void>((*store)->checkpoint());
          if (i == 9) static_cast<void>((*store)->retain(3));
        }
      }
      disk_.power_on();
      const auto store = open();
      for (const auto& entry : acknowledged) {
        ASSERT_EQ(store->head_entry(entry.id, entry.seq).value(), entry) << "cut at sync " << nth;
      }
      ASSERT_LE(load_all(*store).size(), acknowledged.size() + 1);
      ASSERT_EQ(problems(*store), "");
    }
  }
}

}  // namespace
}  // namespace pawl::test
