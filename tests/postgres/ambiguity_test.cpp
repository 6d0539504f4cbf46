// SPDX-License-Identifier: Apache-2.0
// Connections that end before, during and after a commit: nothing is lost, nothing is done twice, nothing is
// guessed.
#include <future>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/proxy.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

class Ambiguity : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
    proxy_.emplace(place_->server());
  }

  std::unique_ptr<Store> open() {
    auto options = place_->options();
    options.url = proxy_->url(place_->database());
    auto store = open_postgres(options).value();
    EXPECT_TRUE(store->execute(std::vector{plain("CREATE TABLE IF NOT EXISTS t(x INTEGER)")}));
    return store;
  }
  std::vector<std::string> keys(Store& store) {
    std::vector<std::string> found;
    const auto entries = store.feed(0, 1000).value();
    for (const auto& entry : entries) found.push_back(entry.key);
    return found;
  }
  using Keys = std::vector<std::string>;
  /// So many entries that the first ones are sent before the batch is complete.
  static Keys join_many(Store& store, const std::string& prefix) {
    Keys keys;
    for (int i = 0; i < 300; ++i) {
      keys.push_back(prefix + std::to_string(i));
      EXPECT_TRUE(join(store, created(keys.back())));
    }
    return keys;
  }

  std::optional<PostgresPlace> place_;
  std::optional<Proxy> proxy_;
};

TEST_F(Ambiguity, ABatchThatNeverArrivedIsSentAgain) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_TRUE(join(*store, created("b")));
  proxy_->cut(Proxy::Cut::next_request);
  const auto done = store->commit();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(proxy_->cuts(), 1);
  EXPECT_EQ(keys(*store), (Keys{"a", "b"}));
}

TEST_F(Ambiguity, ACommitWhoseAnswerWasLostIsFoundAndNotDoneTwice) {
  auto store = open();
  write(*store, created("a"));
  const auto epoch = store->info().epoch;
  ASSERT_TRUE(join(*store, created("b")));
  proxy_->cut(Proxy::Cut::answer_to_commit);
  const auto done = store->commit();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(proxy_->cuts(), 1);
  EXPECT_EQ(keys(*store), (Keys{"a", "b"}));
  EXPECT_GT(store->info().epoch, epoch) << "the own epoch was raised before looking";
  EXPECT_EQ(write(*store, created("c")), 3);
  EXPECT_EQ(problems(*store), "");
}

TEST_F(Ambiguity, ABatchThatIsStillRunningIsEndedBeforeItIsLookedFor) {
  auto store = open();
  write(*store, created("a"));
  const auto backend = owner_backend(*place_);
  Session lock(*place_);
  lock.run("BEGIN");
  lock.run("LOCK TABLE pawl.log IN SHARE MODE");
  ASSERT_TRUE(join(*store, created("b")));
  proxy_->cut(Proxy::Cut::client_only);
  auto commit = std::async(std::launch::async, [&] { return store->commit(); });
  // The old backend waits for the lock with the batch in its hands; the owner has it ended.
  wait_until(*place_, "SELECT count(*) FROM pg_stat_activity WHERE pid = " + backend, "0");
  lock.run("ROLLBACK");
  const auto done = commit.get();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(keys(*store), (Keys{"a", "b"}));
}

TEST_F(Ambiguity, ApplicationSqlWhoseTransactionWasLostIsNotRunAgain) {
  auto store = open();
  ASSERT_TRUE(join(*store, {created("a")}, {plain("INSERT INTO t VALUES(1)")}));
  proxy_->cut(Proxy::Cut::next_request);
  EXPECT_EQ(code(store->commit()), Code::rolled_back);
  EXPECT_EQ(store->query(plain("SELECT count(*) FROM t")).value(), (Rows{{0}}));
  EXPECT_TRUE(keys(*store).empty());
  write(*store, created("b"));
  EXPECT_EQ(keys(*store), (Keys{"b"}));
}

TEST_F(Ambiguity, ApplicationSqlWhoseCommitWasMadeIsThereOnce) {
  auto store = open();
  ASSERT_TRUE(join(*store, {created("a")}, {plain("INSERT INTO t VALUES(1)")}));
  proxy_->cut(Proxy::Cut::answer_to_commit);
  const auto done = store->commit();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(store->query(plain("SELECT count(*) FROM t")).value(), (Rows{{1}}));
  EXPECT_EQ(keys(*store), (Keys{"a"}));
}

TEST_F(Ambiguity, ASchemaWhoseCommitWasMadeIsNotMadeTwice) {
  auto store = open();
  proxy_->cut(Proxy::Cut::answer_to_commit);
  const auto done = store->execute(std::vector{plain("INSERT INTO t VALUES(7)")});
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(proxy_->cuts(), 1);
  EXPECT_EQ(store->query(plain("SELECT count(*) FROM t")).value(), (Rows{{1}}));
}

TEST_F(Ambiguity, ManyLostAnswersLoseAndDoubleNothing) {
  auto store = open();
  Keys expected;
  for (int i = 0; i < 20; ++i) {
    const auto key = "k" + std::to_string(i);
    ASSERT_TRUE(join(*store, created(key)));
    proxy_->cut(i % 2 == 0 ? Proxy::Cut::answer_to_commit : Proxy::Cut::next_request);
    const auto done = store->commit();
    ASSERT_TRUE(done) << done.error().to_string();
    expected.push_back(key);
  }
  EXPECT_EQ(proxy_->cuts(), 20);
  EXPECT_EQ(keys(*store), expected);
}

TEST_F(Ambiguity, ALargeBatchIsThereOnceWhereverItsConnectionBreaks) {
  auto store = open();
  proxy_->cut(Proxy::Cut::next_request);
  auto expected = join_many(*store, "a");
  const auto first = store->commit();
  ASSERT_TRUE(first) << first.error().to_string();
  const auto more = join_many(*store, "b");
  proxy_->cut(Proxy::Cut::answer_to_commit);
  const auto second = store->commit();
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(proxy_->cuts(), 2);
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(keys(*store), expected);
  EXPECT_EQ(problems(*store), "");
}

TEST_F(Ambiguity, ALargeBatchThatIsDiscardedLeavesNothing) {
  auto store = open();
  join_many(*store, "gone");
  store->discard();
  write(*store, created("a"));
  EXPECT_EQ(keys(*store), (Keys{"a"}));
  EXPECT_EQ(problems(*store), "");
}

TEST_F(Ambiguity, ApplicationSqlInALargeBatchIsRefusedByItself) {
  auto store = open();
  auto expected = join_many(*store, "a");
  EXPECT_EQ(code(join(*store, {created("refused")}, {plain("INSERT INTO t VALUES('no number')")})),
            Code::sql_failed);
  ASSERT_TRUE(join(*store, {created("with")}, {plain("INSERT INTO t VALUES(1)")}));
  expected.emplace_back("with");
  const auto more = join_many(*store, "b");
  expected.insert(expected.end(), more.begin(), more.end());
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(keys(*store), expected);
  EXPECT_EQ(store->query(plain("SELECT count(*) FROM t")).value(), (Rows{{1}}));
}

TEST_F(Ambiguity, AnOwnerThatWasFollowedMeanwhileLearnsThatItsCommitWasMade) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_TRUE(join(*store, created("b")));
  // The answer is lost, and before the owner is back somebody else has taken the store.
  Session takeover(*place_);
  takeover.run("BEGIN");
  takeover.run("UPDATE pawl.leases SET owner = 'other', epoch = epoch + 1");
  proxy_->cut(Proxy::Cut::answer_to_commit);
  auto commit = std::async(std::launch::async, [&] { return store->commit(); });
  wait_until(*place_, "SELECT max(seq) FROM pawl.log", "2");
  takeover.run("UPDATE pawl.shards SET epoch = epoch + 1");
  takeover.run("COMMIT");
  const auto done = commit.get();
  EXPECT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(code(join(*store, created("c"))), Code::store_fenced);
}

TEST_F(Ambiguity, AServerThatLostWhatWasAcknowledgedIsRefused) {
  auto store = open();
  write(*store, created("a"));
  // What a failover to a standby that lags behind does.
  place_->sql("DELETE FROM pawl.log");
  ASSERT_TRUE(join(*store, created("b")));
  proxy_->cut(Proxy::Cut::next_request);
  EXPECT_EQ(code(store->commit()), Code::store_diverged);
  EXPECT_EQ(code(store->commit()), Code::store_poisoned);
}

TEST_F(Ambiguity, AServerThatStaysAwayPoisonsTheStoreWithoutAPassword) {
  auto options = place_->options();
  options.patience = std::chrono::milliseconds(200);
  options.url = proxy_->url(place_->database(), "password=s3cr3t");
  auto store = open_postgres(options).value();
  ASSERT_TRUE(join(*store, created("a")));
  proxy_.reset();
  const auto done = store->commit();
  ASSERT_EQ(code(done), Code::store_io);
  EXPECT_EQ(done.error().to_string().find("s3cr3t"), std::string::npos);
  EXPECT_EQ(code(store->feed(0, 1)), Code::store_poisoned);
}

TEST_F(Ambiguity, ReadersFindNewConnectionsByThemselves) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_EQ(keys(*store), (Keys{"a"}));
  place_->sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND "
      "pid <> "
      "pg_backend_pid()");
  EXPECT_EQ(keys(*store), (Keys{"a"}));
  write(*store, created("b"));
  EXPECT_EQ(keys(*store), (Keys{"a", "b"}));
}

TEST_F(Ambiguity, MarksOfBatchesWithoutEntriesDoNotPileUp) {
  auto store = place_->open({}).value();
  const auto draft = created("k");
  write(*store, draft);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store->put(std::vector{Ephemeral{draft.id, "beat", std::to_string(i), at_second(i)}}));
    ASSERT_TRUE(store->commit());
    ASSERT_TRUE(store->retain(0));
  }
  EXPECT_LE(std::stoi(place_->sql("SELECT count(*) FROM pawl.batches")), 1);
}

}  // namespace
}  // namespace pawl::test
