// SPDX-License-Identifier: Apache-2.0
// Following the log from another connection, as from another process.
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

class Feed : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
    store_ = place_->open({.flush_every = 16}).value();
    ASSERT_TRUE(store_->execute(std::vector{plain("CREATE TABLE t(x INTEGER)")}));
    reader_ = place_->open_read_only().value();
  }

  std::optional<PostgresPlace> place_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> reader_;
};

TEST_F(Feed, AReaderIsWokenByACommit) {
  auto woken = std::async(std::launch::async, [&] { return reader_->wait(0, kHangGuard); });
  wait_until(*place_, "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'", "t");
  write(*store_, created("a"));
  EXPECT_TRUE(woken.get().value());
}

TEST_F(Feed, ACommitIsAnnouncedOnlyWhileSomebodyListens) {
  Session listener(*place_);
  listener.run("LISTEN pawl_pawl");
  write(*store_, created("a"));
  EXPECT_THAT(listener.notifications(), testing::IsEmpty());
  ASSERT_FALSE(reader_->wait(1, Duration::zero()).value());  // listens from here on
  write(*store_, created("b"));
  EXPECT_THAT(listener.notifications(), testing::ElementsAre("entries 2"));
  reader_.reset();
  wait_until(*place_, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "0");
  write(*store_, created("c"));
  EXPECT_THAT(listener.notifications(), testing::IsEmpty());
}

TEST_F(Feed, AReaderListensOnceTheCommitsAreOverThatDidNotAnnounceThemselves) {
  Session commits(*place_);
  commits.run("BEGIN");
  ASSERT_EQ(commits.run("SELECT pg_try_advisory_xact_lock(hashtextextended('pawl_pawl', 1))"), "t");
  auto woken = std::async(std::launch::async, [&] { return reader_->wait(0, kHangGuard); });
  wait_until(*place_,
             "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%shared%'",
             "1");
  // Nobody overtakes it, however quickly commits follow each other.
  EXPECT_EQ(place_->sql("SELECT pg_try_advisory_xact_lock(hashtextextended('pawl_pawl', 1))"), "f");
  commits.run("COMMIT");
  write(*store_, created("a"));
  EXPECT_TRUE(woken.get().value());
}

TEST_F(Feed, WhatIsThereAlreadyNeedsNoWaiting) {
  write(*store_, created("a"));
  EXPECT_TRUE(reader_->wait(0, Duration::zero()).value());
  EXPECT_FALSE(reader_->wait(1, Duration::zero()).value());
}

TEST_F(Feed, AReaderThatLostItsNotificationsPolls) {
  ASSERT_FALSE(reader_->wait(0, Duration::zero()).value());  // listens from here on
  place_->sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND "
      "pid <> "
      "pg_backend_pid()");
  write(*store_, created("a"));
  EXPECT_TRUE(reader_->wait(0, kHangGuard).value());
}

TEST_F(Feed, TheOwnerIsWokenToo) {
  auto woken = std::async(std::launch::async, [&] { return store_->wait(0, kHangGuard); });
  write(*store_, created("a"));
  EXPECT_TRUE(woken.get().value());
}

TEST_F(Feed, AReaderMissesNothingWhileLongTransactionsAreOpen) {
  // One of them has written, one holds an old snapshot: together what makes a feed by transaction ids stall
  // or skip.
  Session writes(*place_);
  writes.run("BEGIN");
  writes.run("INSERT INTO t VALUES(1)");
  Session looks(*place_);
  looks.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  looks.run("SELECT count(*) FROM pawl.log");
  constexpr int kBatches = 150;
  std::jthread owner([&] {
    for (int i = 0; i < kBatches; ++i) {
      const auto key = std::to_string(i);
      if (i % 7 == 3) {
        ASSERT_TRUE(join(*store_, created("dropped" + key)));
        store_->discard();
      }
      std::vector<Sql> sql;
      if (i % 5 == 0) sql.push_back(plain("INSERT INTO t VALUES(2)"));
      ASSERT_TRUE(join(*store_, {created("x" + key), created("y" + key)}, sql));
      ASSERT_TRUE(store_->commit());
    }
  });
  std::vector<std::string> seen;
  Seq after = 0;
  while (seen.size() < 2 * kBatches) {
    ASSERT_TRUE(reader_->wait(after, kHangGuard).value());
    const auto entries = reader_->feed(after, 7).value();
    for (const auto& entry : entries) {
      ASSERT_GT(entry.seq, after);
      after = entry.seq;
      seen.push_back(entry.key);
    }
  }
  for (std::size_t i = 0; i < kBatches; ++i) {
    ASSERT_EQ(seen[2 * i], "x" + std::to_string(i));
    ASSERT_EQ(seen[2 * i + 1], "y" + std::to_string(i));
  }
}

TEST_F(Feed, AReaderGoesOnAcrossATakeover) {
  write(*store_, created("a"));
  auto options = place_->options();
  options.take_over = true;
  auto next = open_postgres(options).value();
  write(*next, created("b"));
  const auto entries = reader_->feed(0, 10).value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].key, "b");
  EXPECT_EQ(reader_->info().incarnation, next->info().incarnation);
}

TEST_F(Feed, ThePartitionsBelowTheHorizonGo) {
  store_.reset();
  auto options = place_->options();
  options.partition_entries = 10;
  store_ = open_postgres(options).value();
  fill(*store_, 35);
  const std::string partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'pawl.log'::regclass";
  EXPECT_EQ(place_->sql(partitions), "4");
  ASSERT_TRUE(store_->retain(25).value());
  EXPECT_EQ(place_->sql(partitions), "2");
  EXPECT_EQ(store_->feed(25, 100).value().size(), 10U);
  EXPECT_EQ(code(store_->feed(24, 100)), Code::cursor_expired);
  EXPECT_EQ(load_all(*store_).size(), 35U);
  EXPECT_EQ(problems(*store_), "");
}

TEST_F(Feed, AReaderOfTheLogKeepsAPartitionAndNobodyWaits) {
  store_.reset();
  auto options = place_->options();
  options.partition_entries = 10;
  store_ = open_postgres(options).value();
  fill(*store_, 25);
  const std::string partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'pawl.log'::regclass";
  Session looks(*place_);
  looks.run("BEGIN");
  looks.run("SELECT count(*) FROM pawl.log");
  ASSERT_TRUE(store_->retain(20).value());
  EXPECT_EQ(place_->sql(partitions), "3");
  write(*store_, created("more"));
  looks.run("COMMIT");
  ASSERT_TRUE(store_->retain(20).value());
  EXPECT_EQ(place_->sql(partitions), "1");
}

}  // namespace
}  // namespace pawl::test
