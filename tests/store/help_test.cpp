// SPDX-License-Identifier: Apache-2.0
// A large batch that another thread helps to write.
#include <atomic>
#include <thread>

#include "pawl/sim_disk.hpp"
#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

constexpr int kBatch = 1000;  // a helper takes its entries in several parts

/// Offers its help to a store all the time, until it is destroyed.
class Helper {
 public:
  explicit Helper(Store& store) : store_(store), thread_([this] { run(); }) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    stop_ = true;
    thread_.join();
  }
  int times() const { return times_; }

 private:
  void run() {
    while (!stop_) {
      if (!store_.wants_help()) {
        std::this_thread::yield();
        continue;
      }
      store_.help();
      ++times_;
    }
  }

  Store& store_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> times_ = 0;
  std::thread thread_;
};

std::string key_of(int batch, int number) { return std::to_string(batch) + "." + std::to_string(number); }

void join_many(Store& store, int batch) {
  for (int i = 0; i < kBatch; ++i) ASSERT_TRUE(join(store, created(key_of(batch, i))));
}

TEST(StoreHelp, ASmallBatchWantsNone) {
  SqlitePlace place;
  const auto store = place.open({}).value();
  ASSERT_TRUE(join(*store, created("a")));
  EXPECT_FALSE(store->wants_help());
}

TEST(StoreHelp, WhatNobodyHelpedWithIsWrittenByTheCommit) {
  SqlitePlace place;
  const auto store = place.open({}).value();
  join_many(*store, 0);
  EXPECT_TRUE(store->wants_help());
  ASSERT_TRUE(store->commit());
  EXPECT_FALSE(store->wants_help());
  EXPECT_EQ(store->feed(0, 2 * kBatch).value().size(), std::size_t{kBatch});
}

TEST(StoreHelp, EntriesAreWrittenOnceAndInOrderBesideAHelper) {
  SqlitePlace place;
  const auto store = place.open({.flush_every = 500}).value();
  {
    const Helper helper(*store);
    // Until it has helped at all: that is for the machine's scheduler to say.
    for (int batch = 0; batch < 10 || helper.times() == 0; ++batch) {
      join_many(*store, batch);
      ASSERT_TRUE(store->commit());
    }
  }
  Seq last = 0;
  for (auto page = store->feed(0, 4096).value(); !page.empty(); page = store->feed(last, 4096).value()) {
    for (const auto& entry : page) {
      ASSERT_EQ(entry.seq, last + 1);
      ASSERT_EQ(entry.key, key_of(static_cast<int>(last / kBatch), static_cast<int>(last % kBatch)));
      last = entry.seq;
    }
  }
  EXPECT_EQ(last, store->info().last);
  EXPECT_EQ(problems(*store), "");
}

TEST(StoreHelp, TheOwnerUsesTheDatabaseMeanwhileAsIfThereWereNoHelper) {
  SqlitePlace place;
  const auto store = place.open({.flush_every = 500}).value();
  ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE seen(n INTEGER)")}));
  const Helper helper(*store);
  for (int batch = 0; batch < 5; ++batch) {
    join_many(*store, batch);
    const auto tag = request(static_cast<std::uint8_t>(batch));
    ASSERT_TRUE(join(*store, created("tagged" + std::to_string(batch)), tag));
    ASSERT_TRUE(store->find_request(tag.id).value().has_value());
    join_many(*store, batch + 100);
    ASSERT_TRUE(join(*store, {created("sql" + std::to_string(batch))},
                     {plain("INSERT INTO seen SELECT count(*) FROM log")}));
    auto other = created("other");
    other.machine = "machine" + std::to_string(batch);
    other.id = instance_id(other.machine, other.key);
    join_many(*store, batch + 200);
    ASSERT_TRUE(join(*store, other));
    const Ephemeral progress{.id = created("x").id, .name = "progress", .value = "1"};
    ASSERT_TRUE(store->put(std::span(&progress, 1)));
    ASSERT_TRUE(store->commit());
    const auto entries = (batch + 1) * (3 * kBatch + 3);
    const auto rows = store->query(plain("SELECT max(n) FROM seen")).value();
    EXPECT_EQ(std::get<std::int64_t>(rows.at(0).at(0).get()), entries - kBatch - 2)
        << "a statement sees what was applied before it";
  }
  EXPECT_EQ(problems(*store), "");
}

TEST(StoreHelp, ADiscardedBatchLeavesNothingBehind) {
  SqlitePlace place;
  const auto store = place.open({}).value();
  const Helper helper(*store);
  for (int batch = 0; batch < 10; ++batch) {
    join_many(*store, batch);
    store->discard();
  }
  ASSERT_TRUE(join(*store, created("kept")));
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*store).size(), 1U);
  EXPECT_EQ(problems(*store), "");
}

Draft large(int number) {
  auto made = created("large" + std::to_string(number));
  made.data = std::string(100'000, 'x');
  return made;
}

TEST(StoreHelp, ALargeBatchThatNobodyHelpsWithIsHandedToTheDatabaseByTheWay) {
  SqlitePlace place;
  const auto store = place.open({}).value();
  int taken = 0;
  // Help is wanted while parts wait, and no longer once the owner has handed them over itself.
  bool waited = false;
  for (; taken < 1000 && !(waited && !store->wants_help()); ++taken) {
    ASSERT_TRUE(join(*store, large(taken)));
    waited = waited || store->wants_help();
  }
  EXPECT_LT(taken, 1000);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*store).size(), static_cast<std::size_t>(taken));
}

TEST(StoreHelp, WhatFailsWhileHelpingIsToldByTheCommit) {
  sim::Disk disk{7};
  const auto open = [&] { return open_sqlite({.path = "pawl.db", .vfs = disk.vfs_name()}).value(); };
  auto store = open();
  fill(*store, 3);
  store.reset();
  store = open();
  join_many(*store, 0);
  ASSERT_TRUE(store->wants_help());
  disk.fail_next({.on = sim::Operation::read});  // of the page that the entries go to
  std::jthread([&] { store->help(); }).join();
  EXPECT_FALSE(store->wants_help()) << "after a failure there is nothing to help with";
  EXPECT_EQ(code(store->commit()), Code::store_io);
  store.reset();
  store = open();
  EXPECT_EQ(load_all(*store).size(), 3U) << "nothing of the batch";
  EXPECT_EQ(problems(*store), "");
}

}  // namespace
}  // namespace pawl::test
