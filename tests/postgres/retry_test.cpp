// SPDX-License-Identifier: Apache-2.0
// Deadlocks, serialization failures, restarts and failover: tried again within bounds, and reported
// otherwise.
#include <gmock/gmock.h>

#include <future>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

class Retry : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }
  /// From now on appending fails so often.
  void fail_appends(int times, const std::string& state) {
    place_->sql(
        "CREATE SEQUENCE failures; CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF "
        "nextval('failures') <= " +
        std::to_string(times) + " THEN RAISE EXCEPTION 'not now' USING ERRCODE = '" + state +
        "'; END IF; RETURN NEW; END$$; CREATE TRIGGER fails BEFORE INSERT ON pawl.log FOR EACH ROW EXECUTE "
        "FUNCTION public.fails()");
  }

  std::optional<PostgresPlace> place_;
};

TEST_F(Retry, ASerializationFailureIsTriedAgain) {
  auto store = place_->open({}).value();
  fail_appends(3, "40001");
  EXPECT_EQ(write(*store, created("a")), 1);
  EXPECT_EQ(store->feed(0, 10).value().size(), 1U);
  EXPECT_EQ(place_->sql("SELECT last_value FROM failures"), "4");
}

TEST_F(Retry, AFailureThatDoesNotEndIsReportedAndTheStoreGoesOn) {
  auto options = place_->options();
  options.patience = std::chrono::milliseconds(100);
  auto store = open_postgres(options).value();
  fail_appends(1'000'000, "40P01");
  ASSERT_TRUE(join(*store, created("a")));
  EXPECT_EQ(code(store->commit()), Code::rolled_back);
  place_->sql("DROP TRIGGER fails ON pawl.log");
  EXPECT_EQ(write(*store, created("b")), 2);
  EXPECT_EQ(load_all(*store).size(), 1U);
}

TEST_F(Retry, AFullDiskIsReportedAsSuchAndTheStoreGoesOn) {
  auto store = place_->open({}).value();
  fail_appends(1, "53100");
  ASSERT_TRUE(join(*store, created("a")));
  EXPECT_EQ(code(store->commit()), Code::disk_full);
  EXPECT_EQ(write(*store, created("b")), 2);
}

TEST_F(Retry, AnErrorThatNobodyExpectsPoisons) {
  auto store = place_->open({}).value();
  fail_appends(1, "XX000");
  ASSERT_TRUE(join(*store, created("a")));
  EXPECT_EQ(code(store->commit()), Code::store_io);
  EXPECT_EQ(code(join(*store, created("b"))), Code::store_poisoned);
}

TEST_F(Retry, ADeadlockOfApplicationSqlIsTriedAgain) {
  place_->sql("ALTER DATABASE " + place_->database() + " SET deadlock_timeout = '100ms'");
  auto store = place_->open({}).value();
  ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE t(id INTEGER PRIMARY KEY, x INTEGER)"),
                                         plain("INSERT INTO t VALUES(1, 0), (2, 0)")}));
  Session other(*place_);
  other.run("SET deadlock_timeout = '60s'");  // so that it is the store's transaction that is ended
  other.run("BEGIN");
  other.run("UPDATE t SET x = 10 WHERE id = 2");
  auto joined = std::async(std::launch::async, [&] {
    return join(*store, {created("a")},
                {plain("UPDATE t SET x = x + 1 WHERE id = 1"), plain("UPDATE t SET x = x + 1 WHERE id = 2")});
  });
  wait_until_blocked(*place_, owner_backend(*place_));
  other.begin("UPDATE t SET x = 10 WHERE id = 1");
  EXPECT_EQ(other.finish(), "");
  other.run("COMMIT");
  const auto seq = joined.get();
  ASSERT_TRUE(seq) << seq.error().to_string();
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->query(plain("SELECT x FROM t ORDER BY id")).value(), (Rows{{11}, {11}}));
}

TEST_F(Retry, ADeferredConstraintRefusesItsOwnTransactionOnly) {
  auto store = place_->open({}).value();
  ASSERT_TRUE(
      store->execute(std::vector{plain("CREATE TABLE t(x INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED)")}));
  ASSERT_TRUE(join(*store, {created("a")}, {plain("INSERT INTO t VALUES(1)")}));
  EXPECT_EQ(code(join(*store, {created("b")}, {plain("INSERT INTO t VALUES(1)")})), Code::sql_failed);
  // Within one transaction it may be broken for a while.
  ASSERT_TRUE(join(*store, {created("c")},
                   {plain("INSERT INTO t VALUES(1)"), plain("DELETE FROM t WHERE x = 1"),
                    plain("INSERT INTO t VALUES(2)")}));
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->query(plain("SELECT x FROM t")).value(), (Rows{{2}}));
  EXPECT_EQ(load_all(*store).size(), 2U);
}

TEST(ServerRestart, AnOwnerOutlivesCrashesOfTheServer) {
  PAWL_NEEDS_POSTGRES();
  Server server;
  PostgresPlace place(server);
  auto store = place.open({}).value();
  Seq last = 0;
  for (int i = 0; i < 3; ++i) {
    last = write(*store, created("k" + std::to_string(i)));
    server.crash();
    server.start();
  }
  EXPECT_EQ(write(*store, created("after")), last + 1);
  EXPECT_EQ(store->feed(0, 10).value().size(), 4U);
  EXPECT_EQ(problems(*store), "");
}

TEST(ServerRestart, AReaderWaitsForTheServerToComeBack) {
  PAWL_NEEDS_POSTGRES();
  Server server;
  PostgresPlace place(server);
  auto store = place.open({}).value();
  write(*store, created("a"));
  const auto reader = place.open_read_only().value();
  ASSERT_EQ(reader->feed(0, 10).value().size(), 1U);
  server.crash();
  auto read = std::async(std::launch::async, [&] { return reader->feed(0, 10); });
  server.start();
  const auto entries = read.get();
  ASSERT_TRUE(entries) << entries.error().to_string();
  EXPECT_EQ(entries->size(), 1U);
}

TEST(ServerRestart, AReaderWaitsNoLongerThanItsPatience) {
  PAWL_NEEDS_POSTGRES();
  Server server;
  PostgresPlace place(server);
  auto store = place.open({}).value();
  write(*store, created("a"));
  auto options = place.options();
  options.read_only = true;
  options.patience = std::chrono::milliseconds(100);
  const auto reader = open_postgres(options).value();
  server.crash();
  EXPECT_EQ(code(reader->feed(0, 10)), Code::store_io);
  server.start();
  EXPECT_EQ(reader->feed(0, 10).value().size(), 1U);
}

TEST(ServerRestart, ACommitIsNotAcknowledgedWhileItsStandbyLacksIt) {
  PAWL_NEEDS_POSTGRES();
  Server server;
  PostgresPlace place(server);
  // A renewal of the lease waits for the standby, too, and the epoch is not raised meanwhile. So the first
  // one has ended before there is a standby to wait for, and the next one is far away.
  auto options = place.options();
  options.lease = std::chrono::minutes(10);
  auto store = open_postgres(options).value();
  wait_until(
      place,
      "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE 'UPDATE pawl.leases SET "
      "until%'",
      "1");
  server.change("synchronous_standby_names", "standby");
  wait_until(place, "SHOW synchronous_standby_names", "standby");
  ASSERT_TRUE(join(*store, created("a")));
  auto commit = std::async(std::launch::async, [&] { return store->commit(); });
  const auto backend = owner_backend(place);
  const auto waits =
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = " + backend;
  wait_until(place, waits, "1");
  // Somebody cancels the wait: the server answers as if all were well, with a warning.
  place.sql("SELECT pg_cancel_backend(" + backend + ")");
  // So the owner raises its epoch, which waits for the standby in turn.
  wait_until(place, "SELECT count(*) FROM pawl.log", "1");
  wait_until(place, waits, "1");
  EXPECT_EQ(commit.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  server.change("synchronous_standby_names", "");
  const auto done = commit.get();
  EXPECT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(store->feed(0, 10).value().size(), 1U);
}

TEST(ServerRestart, AnOwnerFollowsAPromotionToTheSynchronousStandbyAndNothingIsLost) {
  PAWL_NEEDS_POSTGRES();
  Server primary(Settings{{"synchronous_standby_names", "standby"}, {"synchronous_commit", "local"}});
  Server standby(primary, Settings{{"synchronous_standby_names", ""}});
  PostgresPlace place(primary);
  primary.change("synchronous_commit", "on");
  auto options = place.options();
  options.url = "postgresql://postgres@/" + place.database() + "?host=" + primary.directory().string() + "," +
                standby.directory().string() + "&port=5432,5432";
  auto store = open_postgres(options).value();
  EXPECT_TRUE(store->info().weakened_guarantees.empty());
  const auto drafts = fill(*store, 5);
  primary.crash();
  standby.promote();
  const auto seq = write(*store, created("after"));
  EXPECT_GT(seq, 5);
  const auto entries = store->feed(0, 100).value();
  ASSERT_EQ(entries.size(), 6U);
  EXPECT_EQ(entries[4], drafts[4].stored(5));
  // The old primary comes back and the new one goes: what it lacks must not be forgotten.
  primary.start();
  primary.change("synchronous_standby_names", "");
  standby.crash();
  ASSERT_TRUE(join(*store, created("astray")));
  EXPECT_EQ(code(store->commit()), Code::store_diverged);
}

}  // namespace
}  // namespace pawl::test
