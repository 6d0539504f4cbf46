// SPDX-License-Identifier: Apache-2.0
// One owner: the fence in both orders, a commit that is under way, leases and takeovers.
#include <future>
#include <thread>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

class Fencing : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }

  std::unique_ptr<Store> open() { return place_->open({}).value(); }
  std::unique_ptr<Store> take_over() {
    auto options = place_->options();
    options.take_over = true;
    return open_postgres(options).value();
  }
  /// Keys of all entries, in order.
  std::vector<std::string> keys() {
    std::vector<std::string> found;
    const auto reader = place_->open_read_only().value();
    const auto entries = reader->feed(0, 1000).value();
    for (const auto& entry : entries) found.push_back(entry.key);
    return found;
  }
  using Keys = std::vector<std::string>;

  std::optional<PostgresPlace> place_;
};

TEST_F(Fencing, AStaleBatchThatComesAfterTheTakeoverIsRefused) {
  auto first = open();
  write(*first, created("a"));
  auto second = take_over();
  static_cast<void>(join(*first, created("stale")));  // refused where it has heard of its successor by now
  EXPECT_EQ(code(first->commit()), Code::store_fenced);
  write(*second, created("b"));
  EXPECT_EQ(keys(), (Keys{"a", "b"}));
}

TEST_F(Fencing, ATakeoverWaitsForATransactionThatHoldsTheFence) {
  auto store = open();
  const auto epoch = std::to_string(store->info().epoch);
  Session batch(*place_);
  Session takeover(*place_);
  batch.run("BEGIN");
  batch.run("SELECT pawl.pawl_fence(" + epoch + ")");
  batch.run("INSERT INTO pawl.machines VALUES(99, 'late')");
  takeover.begin("UPDATE pawl.shards SET epoch = epoch + 1");
  wait_until_blocked(*place_, std::to_string(takeover.backend()));
  batch.run("COMMIT");
  EXPECT_EQ(takeover.finish(), "");
  EXPECT_EQ(place_->sql("SELECT count(*) FROM pawl.machines WHERE number = 99"), "1");
}

TEST_F(Fencing, ATransactionThatComesDuringATakeoverWaitsForItAndIsRefused) {
  auto store = open();
  const auto epoch = std::to_string(store->info().epoch);
  Session batch(*place_);
  Session takeover(*place_);
  takeover.run("BEGIN");
  takeover.run("UPDATE pawl.shards SET epoch = epoch + 1");
  batch.run("BEGIN");
  batch.begin("SELECT pawl.pawl_fence(" + epoch + ")");
  wait_until_blocked(*place_, std::to_string(batch.backend()));
  takeover.run("COMMIT");
  EXPECT_EQ(batch.finish(), "PAWL1");
}

TEST_F(Fencing, ATransactionGoesOnWhereTheTakeoverItWaitedForIsTakenBack) {
  auto store = open();
  const auto epoch = std::to_string(store->info().epoch);
  Session batch(*place_);
  Session takeover(*place_);
  takeover.run("BEGIN");
  takeover.run("UPDATE pawl.shards SET epoch = epoch + 1");
  batch.begin("SELECT pawl.pawl_fence(" + epoch + ")");
  wait_until_blocked(*place_, std::to_string(batch.backend()));
  takeover.run("ROLLBACK");
  EXPECT_EQ(batch.finish(), "");
}

TEST_F(Fencing, ACommitThatIsUnderWayEndsBeforeTheTakeoverDoes) {
  auto first = open();
  write(*first, created("a"));
  // Holds the batch in the middle of its way: its COMMIT is with the server already.
  Session lock(*place_);
  lock.run("BEGIN");
  lock.run("LOCK TABLE pawl.log IN SHARE MODE");
  ASSERT_TRUE(join(*first, created("stale")));
  auto commit = std::async(std::launch::async, [&] { return first->commit(); });
  wait_until_blocked(*place_, owner_backend(*place_));
  auto second = take_over();
  lock.run("ROLLBACK");
  EXPECT_EQ(code(commit.get()), Code::store_fenced);
  write(*second, created("b"));
  EXPECT_EQ(keys(), (Keys{"a", "b"}));
}

TEST_F(Fencing, AFencedOwnerServesNoReads) {
  auto first = open();
  write(*first, created("a"));
  ASSERT_TRUE(first->still_owner());
  auto second = take_over();
  // It listener of its successor without writing; waiting for an entry ends with that.
  EXPECT_EQ(code(first->wait(1, kHangGuard)), Code::store_fenced);
  EXPECT_EQ(code(first->still_owner()), Code::store_fenced);
  EXPECT_EQ(code(first->feed(0, 10)), Code::store_fenced);
  EXPECT_EQ(code(first->head_entry(instance_id("door", "a"), 1)), Code::store_fenced);
  EXPECT_TRUE(second->still_owner());
}

TEST_F(Fencing, AFencedOwnerDoesNotEndItsSuccessorsLease) {
  auto first = open();
  auto second = take_over();
  first.reset();
  EXPECT_EQ(code(place_->open({})), Code::store_locked);
  EXPECT_EQ(write(*second, created("a")), 1);
}

TEST_F(Fencing, AnOwnerWhoseLeaseHasEndedIsFollowedWithoutAskingForIt) {
  auto first = open();
  // The first renewal comes at once, the next after a third of the lease.
  wait_until(*place_, "SELECT until > since + interval '10 s' FROM pawl.leases", "t");
  place_->sql("UPDATE pawl.leases SET until = clock_timestamp()");
  auto second = place_->open({});
  ASSERT_TRUE(second) << second.error().to_string();
  static_cast<void>(join(*first, created("stale")));
  EXPECT_EQ(code(first->commit()), Code::store_fenced);
}

TEST_F(Fencing, TheLeaseOfAnOwnerThatDiedIsWaitedFor) {
  auto options = place_->options();
  options.lease = std::chrono::milliseconds(700);
  auto first = open_postgres(options).value();
  const auto epoch = first->info().epoch;
  first.reset();
  // As it looks after kill -9: the lease runs, the recorded backend is gone.
  place_->sql("UPDATE pawl.leases SET until = clock_timestamp() + interval '500 ms'");
  auto second = open_postgres(options);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ((*second)->info().epoch, epoch + 1);
}

TEST_F(Fencing, AnOwnerProlongsItsLease) {
  auto options = place_->options();
  options.lease = std::chrono::seconds(3);  // a loaded machine may renew it late
  auto store = open_postgres(options).value();
  const auto until = place_->sql("SELECT until FROM pawl.leases");
  for (int i = 0; i < 3; ++i) {
    const auto before = place_->sql("SELECT until FROM pawl.leases");
    wait_until(*place_, "SELECT until > '" + before + "' FROM pawl.leases", "t");
  }
  EXPECT_TRUE(store->still_owner());
  EXPECT_EQ(code(place_->open({})), Code::store_locked);
}

TEST_F(Fencing, ATransactionThatIdlesTooLongIsEndedByTheServerAndTheStoreGoesOn) {
  auto options = place_->options();
  options.lease = std::chrono::milliseconds(200);
  auto store = open_postgres(options).value();
  ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE t(x INTEGER)")}));
  const auto backend = owner_backend(*place_);
  ASSERT_TRUE(join(*store, {created("a")}, {plain("INSERT INTO t VALUES(1)")}));
  wait_until(*place_, "SELECT count(*) FROM pg_stat_activity WHERE pid = " + backend, "0");
  EXPECT_EQ(code(store->commit()), Code::rolled_back);
  EXPECT_EQ(store->query(plain("SELECT count(*) FROM t")).value(), (Rows{{0}}));
  write(*store, created("b"));
  EXPECT_EQ(keys(), (Keys{"b"}));
}

TEST_F(Fencing, TwoProgramsThatStartAtOnceMakeOneStoreWithOneOwner) {
  for (int round = 0; round < 5; ++round) {
    place_.emplace();
    std::vector<std::future<Result<std::unique_ptr<Store>>>> openings;
    for (int i = 0; i < 4; ++i) {
      openings.push_back(std::async(std::launch::async, [&] { return open_postgres(place_->options()); }));
    }
    std::vector<std::unique_ptr<Store>> owners;
    for (auto& opening : openings) {
      auto store = opening.get();
      if (store) {
        owners.push_back(*std::move(store));
      } else {
        EXPECT_EQ(code(store), Code::store_locked) << store.error().to_string();
      }
    }
    EXPECT_EQ(owners.size(), 1U);
  }
}

}  // namespace
}  // namespace pawl::test
