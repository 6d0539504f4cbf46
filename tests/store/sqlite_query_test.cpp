// SPDX-License-Identifier: Apache-2.0
// Queries of the application that are slow: nothing of the store's own waits for them.
#include <sqlite3.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

/// While it lives, new connections have the SQL function `hold()`, which returns when `let_go` was called.
class Hold {
 public:
  Hold() {
    present_ = this;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Hold::install));
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    let_go();
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&Hold::install));
  }

  void wait_for(int calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ == calls; });
  }
  bool is_open() {
    const std::scoped_lock lock(mutex_);
    return open_;
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static int install(sqlite3* db, const char** /*message*/, const sqlite3_api_routines* /*routines*/) {
    return sqlite3_create_function(db, "hold", 0, SQLITE_UTF8, nullptr, &Hold::call, nullptr, nullptr);
  }
  static void call(sqlite3_context* context, int /*count*/, sqlite3_value** /*values*/) {
    std::unique_lock lock(present_->mutex_);
    ++present_->calls_;
    present_->changed_.notify_all();
    present_->changed_.wait(lock, [] { return present_->open_; });
    sqlite3_result_int(context, 1);
  }

  static inline Hold* present_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  bool open_ = false;
};

TEST(SqliteQuery, TheOwnerReadsAndCommitsWhileEveryConnectionForQueriesIsInUse) {
  constexpr int kConnections = 4;
  Hold hold;
  const Directory directory;
  auto store = open_sqlite({.path = directory.file("pawl.db")}).value();
  const auto first = created("first");
  const auto seq = write(*store, first);
  std::vector<std::jthread> slow;
  for (int i = 0; i < kConnections; ++i) {
    slow.emplace_back([&] { EXPECT_EQ(store->query(plain("SELECT hold()")).value(), (Rows{{1}})); });
  }
  hold.wait_for(kConnections);
  auto done = std::async([&] {
    EXPECT_TRUE(store->head_entry(first.id, seq).value());
    EXPECT_FALSE(store->find_request(request(1).id).value());
    write(*store, created("second"));
    EXPECT_EQ(store->history(first.id, seq, 0, 10).value().size(), 1U);
    EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
  });
  EXPECT_EQ(done.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  hold.let_go();
}

TEST(SqliteQuery, WaitingForAConnectionCountsAsWell) {
  constexpr int kConnections = 4;
  Hold hold;
  const Directory directory;
  auto store = open_sqlite({.path = directory.file("pawl.db"),
                            .query_limits = {.timeout = std::chrono::milliseconds(1)}})
                   .value();
  std::vector<std::jthread> slow;
  for (int i = 0; i < kConnections; ++i) {
    // What they get depends on when SQLite looks; one that is late does not come so far.
    slow.emplace_back([&] {
      while (code(store->query(plain("SELECT hold()"))) == Code::timed_out && !hold.is_open()) {}
    });
  }
  hold.wait_for(kConnections);
  const auto refused = store->query(plain("SELECT 1"));
  ASSERT_EQ(code(refused), Code::timed_out);
  EXPECT_NE(refused.error().message().find("waited"), std::string::npos) << refused.error().to_string();
  EXPECT_EQ(refused.error().field("ran"), "");
  hold.let_go();
}

}  // namespace
}  // namespace pawl::test
