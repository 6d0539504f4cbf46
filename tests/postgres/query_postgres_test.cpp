// SPDX-License-Identifier: Apache-2.0
// Queries of the application that are slow: nothing of the store's own waits for them.
#include <future>
#include <thread>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/proxy.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

class PostgresQuery : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
    store_ = place_->open({}).value();
    ASSERT_TRUE(store_->execute(std::vector{plain("CREATE TABLE busy(x INTEGER)")}));
  }
  /// Waits until so many queries wait for the lock on the table.
  void wait_for_queries(int count) {
    wait_until(*place_, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'busy'::regclass",
               std::to_string(count));
  }

  std::optional<PostgresPlace> place_;
  std::unique_ptr<Store> store_;
};

TEST_F(PostgresQuery, TheOwnerReadsAndCommitsWhileEveryConnectionForQueriesIsInUse) {
  constexpr int kConnections = 4;
  const auto first = created("first");
  const auto seq = write(*store_, first);
  Session other(*place_);
  other.run("BEGIN; LOCK TABLE busy");
  std::vector<std::jthread> slow;
  for (int i = 0; i < kConnections; ++i) {
    slow.emplace_back([&] { EXPECT_EQ(store_->query(plain("SELECT x FROM busy")).value(), Rows{}); });
  }
  wait_for_queries(kConnections);
  auto done = std::async([&] {
    EXPECT_TRUE(store_->head_entry(first.id, seq).value());
    EXPECT_FALSE(store_->find_request(request(1).id).value());
    write(*store_, created("second"));
    EXPECT_EQ(store_->history(first.id, seq, 0, 10).value().size(), 1U);
    EXPECT_EQ(store_->feed(0, 10).value().size(), 2U);
  });
  EXPECT_EQ(done.wait_for(kHangGuard), std::future_status::ready);
  other.run("COMMIT");
}

TEST_F(PostgresQuery, TheServerEndsAQueryThatWasStopped) {
  Session other(*place_);
  other.run("BEGIN; LOCK TABLE busy");
  std::stop_source stop;
  auto query = std::async([&] { return code(store_->query(plain("SELECT x FROM busy"), stop.get_token())); });
  wait_for_queries(1);
  stop.request_stop();
  EXPECT_EQ(query.get(), Code::cancelled);
  wait_for_queries(0);
  other.run("COMMIT");
}

TEST_F(PostgresQuery, AQueryIsStoppedAlthoughTheServerDoesNotAnswer) {
  Proxy proxy(place_->server());
  const auto reader = open_postgres({.url = proxy.url(place_->database()), .read_only = true}).value();
  Session other(*place_);
  other.run("BEGIN; LOCK TABLE busy");
  std::stop_source stop;
  auto query = std::async([&] { return code(reader->query(plain("SELECT x FROM busy"), stop.get_token())); });
  wait_for_queries(1);
  proxy.silence(true);
  stop.request_stop();
  EXPECT_EQ(query.wait_for(kHangGuard), std::future_status::ready);
  proxy.silence(false);
  EXPECT_EQ(query.get(), Code::cancelled);
  other.run("COMMIT");
}

}  // namespace
}  // namespace pawl::test
