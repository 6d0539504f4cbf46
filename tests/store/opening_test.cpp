// SPDX-License-Identifier: Apache-2.0
// Conformance: opening, closing, owning, reading beside the owner, backing up, checking.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

TEST_P(Conformance, ANewStoreIsEmpty) {
  auto store = open();
  const auto info = store->info();
  EXPECT_EQ(info.last, 0);
  EXPECT_EQ(info.horizon, 0);
  EXPECT_EQ(info.incarnation.size(), 32U);
  EXPECT_EQ(info.incarnation.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_FALSE(info.read_only);
  EXPECT_TRUE(load_all(*store).empty());
}

TEST_P(Conformance, EachOwnerHasAHigherEpochInTheSameIncarnation) {
  auto store = open();
  const auto first = store->info();
  EXPECT_GT(first.epoch, 0);
  store = reopen(std::move(store));
  const auto second = store->info();
  EXPECT_GT(second.epoch, first.epoch);
  EXPECT_EQ(second.incarnation, first.incarnation);
  store = crash(std::move(store));
  EXPECT_GT(store->info().epoch, second.epoch);
  EXPECT_EQ(store->info().incarnation, first.incarnation);
}

TEST_P(Conformance, CommittedEntriesSurviveClosingAndCrashing) {
  auto store = open();
  const auto drafts = fill(*store, 5);
  for (int i = 0; i < 4; ++i) {
    store = i % 2 == 0 ? reopen(std::move(store)) : crash(std::move(store));
    const auto entries = store->feed(0, 10).value();
    ASSERT_EQ(entries.size(), 5U);
    EXPECT_EQ(entries[4], drafts[4].stored(5));
    EXPECT_EQ(load_all(*store).size(), 5U);
    EXPECT_EQ(store->info().last, 5);
  }
}

TEST_P(Conformance, AnOpenBatchIsLostByClosingAndByCrashing) {
  for (const bool crashes : {false, true}) {
    place_ = GetParam()();
    auto store = open();
    write(*store, created("a"));
    ASSERT_TRUE(join(*store, created("b")));
    store = crashes ? crash(std::move(store)) : reopen(std::move(store));
    EXPECT_EQ(load_all(*store).size(), 1U);
    EXPECT_EQ(store->info().last, 1);
  }
}

TEST_P(Conformance, ASecondOwnerIsRefusedAndToldWhoTheFirstIs) {
  auto store = open();
  const auto second = place_->open({});
  ASSERT_EQ(code(second), Code::store_locked);
  EXPECT_EQ(second.error().field("pid"), std::to_string(getpid()));
  EXPECT_FALSE(second.error().field("host").empty());
  EXPECT_TRUE(parse_time(second.error().field("since"))) << second.error().to_string();
  write(*store, created("a"));
  store.reset();
  EXPECT_TRUE(place_->open({})) << "the lock goes with its owner";
}

TEST_P(Conformance, AReaderBesideTheOwnerSeesEveryCommitAtOnce) {
  auto store = open();
  write(*store, created("a"));
  auto reader = place_->open_read_only().value();
  EXPECT_TRUE(reader->info().read_only);
  EXPECT_EQ(reader->info().epoch, store->info().epoch);
  EXPECT_EQ(load_all(*reader), load_all(*store));
  ASSERT_TRUE(join(*store, created("b")));
  EXPECT_EQ(load_all(*reader).size(), 1U);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*reader), load_all(*store))
      << "heads that were not written behind are read from the log";
  EXPECT_EQ(reader->feed(0, 10).value(), store->feed(0, 10).value());
}

TEST_P(Conformance, AReaderCannotWrite) {
  open().reset();
  auto reader = place_->open_read_only().value();
  EXPECT_EQ(code(join(*reader, created("a"))), Code::store_read_only);
  EXPECT_EQ(code(reader->commit()), Code::store_read_only);
  EXPECT_EQ(code(reader->put(std::vector{Ephemeral{}})), Code::store_read_only);
  EXPECT_EQ(code(reader->retain(1)), Code::store_read_only);
  EXPECT_EQ(code(reader->checkpoint()), Code::store_read_only);
  EXPECT_EQ(code(reader->execute(std::vector{Sql{.text = "CREATE TABLE t(x)"}})), Code::store_read_only);
  reader->discard();
}

TEST_P(Conformance, AReaderDoesNotKeepAnOwnerAway) {
  open().reset();
  const auto reader = place_->open_read_only().value();
  EXPECT_TRUE(place_->open({}));
}

TEST_P(Conformance, AReaderNeedsAStore) { EXPECT_FALSE(place_->open_read_only()); }

TEST_P(Conformance, ReadersOnManyThreadsSeeOnlyWholeBatches) {
  auto store = open({.flush_every = 16});
  std::atomic<bool> stop = false;
  std::atomic<int> broken = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        // Batches have three entries each.
        const auto entries = store->feed(0, 1000);
        if (!entries || entries->size() % 3 != 0) ++broken;
        if (load_all(*store).size() % 3 != 0) ++broken;
        if (store->info().last % 3 != 0) ++broken;
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    const auto key = std::to_string(i);
    ASSERT_TRUE(join(*store, std::vector{created("a" + key), created("b" + key)}));
    ASSERT_TRUE(join(*store, created("c" + key)));
    ASSERT_TRUE(store->commit());
    if (i % 10 == 0) {
      ASSERT_TRUE(store->checkpoint());
    }
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(broken, 0);
}

TEST_P(Conformance, CheckpointsBesideWritingLoseNothing) {
  auto store = open();
  std::jthread checkpoints([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) ASSERT_TRUE(store->checkpoint());
  });
  const auto drafts = fill(*store, 100);
  checkpoints.request_stop();
  checkpoints.join();
  store = crash(std::move(store));
  EXPECT_EQ(store->feed(0, 1000).value().size(), 100U);
}

TEST_P(Conformance, ABackupIsAStoreOfItsOwnWithTheSameContent) {
  auto store = open();
  const auto drafts = fill(*store, 50);
  ASSERT_TRUE(join(*store, created("open batch")));
  double progress = 0;
  ASSERT_TRUE(store->backup(place_->backup_path(), [&](double done) {
    EXPECT_GE(done, progress);
    progress = done;
  }));
  EXPECT_EQ(progress, 1.0);
  ASSERT_TRUE(store->commit());
  const auto copy = place_->open_backup().value();
  EXPECT_NE(copy->info().incarnation, store->info().incarnation);
  EXPECT_EQ(copy->info().epoch, 1);
  EXPECT_EQ(copy->info().last, 50);
  EXPECT_EQ(copy->feed(0, 100).value().size(), 50U);
  EXPECT_EQ(copy->head_entry(drafts[7].id, 8).value(), drafts[7].stored(8));
  EXPECT_EQ(write(*copy, created("new")), 51);
  EXPECT_EQ(problems(*copy), "");
}

TEST_P(Conformance, ABackupDoesNotReplaceAnything) {
  auto store = open();
  ASSERT_TRUE(store->backup(place_->backup_path(), {}));
  EXPECT_EQ(code(store->backup(place_->backup_path(), {})), Code::invalid_argument);
}

TEST_P(Conformance, ABackupUnderConstantWritingIsOneMoment) {
  auto store = open({.flush_every = 20});
  fill(*store, 200);
  std::atomic<bool> done = false;
  Result<void> result;
  std::jthread backup([&] {
    result = store->backup(place_->backup_path(), {});
    done = true;
  });
  // Batches of two entries; the copy must not end in the middle of one.
  for (int i = 0; !done || i < 10; ++i) {
    const auto key = std::to_string(i);
    ASSERT_TRUE(join(*store, created("x" + key)));
    ASSERT_TRUE(join(*store, created("y" + key)));
    ASSERT_TRUE(store->commit());
  }
  backup.join();
  ASSERT_TRUE(result) << result.error().to_string();
  const auto copy = place_->open_backup().value();
  const auto last = copy->info().last;
  EXPECT_EQ(last % 2, 0);
  const auto limit = static_cast<std::size_t>(last);
  EXPECT_EQ(copy->feed(0, limit).value(), store->feed(0, limit).value());
  EXPECT_EQ(load_all(*copy).size(), limit);
  EXPECT_EQ(problems(*copy), "");
}

TEST_P(Conformance, AReaderCanMakeABackup) {
  auto store = open();
  fill(*store, 3);
  const auto reader = place_->open_read_only().value();
  ASSERT_TRUE(reader->backup(place_->backup_path(), {}));
  EXPECT_EQ(place_->open_backup().value()->info().last, 3);
}

TEST_P(Conformance, ASoundStoreHasNoProblems) {
  auto store = open({.flush_every = 3});
  const auto drafts = fill(*store, 10);
  ASSERT_TRUE(
      join(*store, std::vector{after(drafts[0], 1, "open"), after(drafts[1], 2, "open")}, {}, request(1)));
  ASSERT_TRUE(store->commit());
  const auto found = store->check().value();
  EXPECT_TRUE(found.problems.empty()) << found.problems.front();
  EXPECT_EQ(found.entries, 12);
  EXPECT_GT(found.heads, 0);
}

}  // namespace
}  // namespace pawl::test
