// SPDX-License-Identifier: Apache-2.0
// Other users of the engine's store: slow queries of the application, and other programs that write.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>

#include "kernel/engine/open_engine.hpp"
#include "tests/engine/machines.hpp"

namespace pawl::test {
namespace {

/// A query that runs until it is interrupted.
Sql endless_query() {
  return {.text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"};
}

class SharedStore : public testing::Test {
 protected:
  SharedStore() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pawl-shared-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    path = (directory / "engine.db").string();
  }
  ~SharedStore() override {
    engine.reset();
    std::filesystem::remove_all(directory);
  }
  void open(Machines machines, EngineOptions options = {}) {
    options.schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}};
    auto opened = open_engine(
        runtime, std::move(machines), std::move(options), [this](Runtime&, const EngineOptions& with) {
          return open_sqlite({.path = path, .query_limits = with.query_limits, .lock_wait = 1ms});
        });
    ASSERT_TRUE(opened) << opened.error().to_string();
    engine = *std::move(opened);
  }

  ThreadRuntime runtime;
  std::filesystem::path directory;
  std::string path;
  std::unique_ptr<Engine> engine;
};

TEST_F(SharedStore, ClosingDoesNotWaitForAQueryOfTheApplication) {
  Gate begun;
  std::atomic<Engine*> known = nullptr;
  std::atomic<Code> ended = Code::internal;
  Machines machines;
  machines.add<counter>().add<order>();
  machines.work<order, Charge>("charge", [&](const WorkContext&, const Charge&) -> Result<Reply> {
    begun.open();
    const auto rows = known.load()->query(endless_query());
    if (!rows) ended = rows.error().code();
    return fail(Code::cancelled, "the test ends");
  });
  open(std::move(machines));
  known = engine.get();
  ASSERT_TRUE(engine->create<order>("o"));
  ASSERT_TRUE(engine->send<order>("o", Place{}));
  runtime.wait(begun);
  engine.reset();
  EXPECT_EQ(ended.load(), Code::stopped);
}

TEST_F(SharedStore, TheOptionsLimitQueries) {
  open(Machines().add<counter>(), {.query_limits = {.timeout = 1ms}});
  const auto refused = engine->query(endless_query());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::timed_out);
  EXPECT_TRUE(engine->create<counter>("c"));
}

TEST_F(SharedStore, TheEngineGoesOnAfterAnotherProgramHasWrittenForTooLong) {
  open(Machines().add<counter>());
  ASSERT_TRUE(engine->create<counter>("c"));
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_TRUE(engine->put_ephemeral("counter", "c", "seen", "1"));
  const auto refused = engine->send<counter>("c", Add{1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::rolled_back) << refused.error().to_string();
  EXPECT_EQ(engine->get<counter>("c").value().data.sum, 0) << "reading goes on";
  sqlite3_close(other);
  const auto sent = engine->send<counter>("c", Add{1});
  ASSERT_TRUE(sent) << sent.error().to_string();
  EXPECT_EQ(sent->data.sum, 1);
}

}  // namespace
}  // namespace pawl::test
