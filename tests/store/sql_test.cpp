// SPDX-License-Identifier: Apache-2.0
// Conformance: the application's own tables and statements.
#include <thread>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

TEST_P(StoreSql, AStatementTravelsWithItsTransition) {
  ASSERT_TRUE(
      run({.text = "INSERT INTO invoice(id, cents) VALUES(?1, ?2)", .rows = {{"i-1", 4200}}, .expect = 1}));
  EXPECT_TRUE(invoices().empty()) << "readers see durable rows only";
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices(), (Rows{{"i-1", 4200}}));
  EXPECT_EQ(load_all(*store_).size(), 1U);
}

TEST_P(StoreSql, AStatementRunsOncePerRow) {
  ASSERT_TRUE(run({.text = "INSERT INTO invoice(id, cents) VALUES(?1, ?2)",
                   .rows = {{"i-1", 1}, {"i-2", 2}, {"i-3", 3}},
                   .expect = 3}));
  ASSERT_TRUE(run(
      {.text = "UPDATE invoice SET cents = cents + 10 WHERE cents >= ?1", .rows = {{2}}, .expect = 2}, "l"));
  ASSERT_TRUE(run({.text = "DELETE FROM invoice WHERE id = ?1", .rows = {}, .expect = 0}, "m"));
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices(), (Rows{{"i-1", 1}, {"i-2", 12}, {"i-3", 13}}));
}

TEST_P(StoreSql, EveryKindOfValueComesBack) {
  const Rows values{{nullptr, std::int64_t{1} << 60, 0.5, "text", Blob{std::string("\0\xff", 2)}, ""}};
  EXPECT_EQ(store_->query({.text = "SELECT ?1, ?2, ?3, ?4, ?5, ?6", .rows = values}).value(), values);
}

TEST_P(StoreSql, AnUnmetExpectationRefusesTheTransactionAlone) {
  ASSERT_TRUE(run({.text = "INSERT INTO invoice VALUES('i-1', 1)"}));
  const auto refused = run({.text = "UPDATE invoice SET cents = 9 WHERE id = 'i-2'", .expect = 1}, "l");
  ASSERT_EQ(code(refused), Code::row_expectation_failed);
  EXPECT_EQ(refused.error().field("expected"), "1");
  EXPECT_EQ(refused.error().field("actual"), "0");
  EXPECT_EQ(code(run({.text = "UPDATE invoice SET cents = 9", .expect = 0}, "m")),
            Code::row_expectation_failed);
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices(), (Rows{{"i-1", 1}}));
  EXPECT_EQ(load_all(*store_).size(), 1U);
}

TEST_P(StoreSql, AUniqueConstraintRefusesTheTransactionAlone) {
  ASSERT_TRUE(run({.text = "INSERT INTO invoice VALUES('i-1', 1)"}));
  const auto refused =
      join(*store_, {created("l")},
           {plain("INSERT INTO invoice VALUES('i-2', 2)"), plain("INSERT INTO invoice VALUES('i-1', 3)")});
  ASSERT_EQ(code(refused), Code::sql_failed);
  EXPECT_NE(refused.error().message().find("invoice"), std::string::npos) << refused.error().to_string();
  EXPECT_EQ(run({.text = "INSERT INTO invoice VALUES('i-3', 3)"}, "m").value(), 2) << "it took no number";
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices(), (Rows{{"i-1", 1}, {"i-3", 3}}));
  EXPECT_EQ(load_all(*store_).size(), 2U);
}

TEST_P(StoreSql, ARefusedRequestIdTakesItsRowsBack) {
  ASSERT_TRUE(join(*store_, created("k"), request(1)));
  EXPECT_EQ(code(join(*store_, {created("l")}, {plain("INSERT INTO invoice VALUES('i-1', 1)")}, request(1))),
            Code::request_id_reused);
  ASSERT_TRUE(store_->commit());
  EXPECT_TRUE(invoices().empty());
}

TEST_P(StoreSql, ADiscardedBatchTakesItsRowsBack) {
  ASSERT_TRUE(run({.text = "INSERT INTO invoice VALUES('i-1', 1)"}));
  store_->discard();
  EXPECT_TRUE(invoices().empty());
}

TEST_P(StoreSql, AWrongNumberOfParametersFails) {
  EXPECT_EQ(code(run({.text = "INSERT INTO invoice VALUES(?1, ?2)", .rows = {{"i-1"}}})), Code::sql_failed);
  EXPECT_EQ(code(run({.text = "INSERT INTO invoice VALUES('i', 1)", .rows = {{"i-1"}}})), Code::sql_failed);
  EXPECT_EQ(code(store_->query({.text = "SELECT ?1"})), Code::sql_failed);
}

TEST_P(StoreSql, AStatementThatDoesNotParseFailsWithTheDatabasesWords) {
  const auto failed = run(plain("INSRT INTO invoice VALUES(1)"));
  ASSERT_EQ(code(failed), Code::sql_failed);
  EXPECT_NE(failed.error().message().find("INSRT"), std::string::npos);
  EXPECT_EQ(code(run(plain("INSERT INTO nothing VALUES(1)"))), Code::sql_failed);
}

TEST_P(StoreSql, WhatWouldReachBeyondTheTransactionIsRefused) {
  for (const char* text : {"BEGIN",
                           "COMMIT",
                           "ROLLBACK",
                           "SAVEPOINT x",
                           "RELEASE application",
                           "ROLLBACK TO application",
                           "PRAGMA synchronous=OFF",
                           "PRAGMA journal_mode",
                           "ATTACH ':memory:' AS other",
                           "DETACH main",
                           "VACUUM",
                           "VACUUM INTO 'copy.db'",
                           "ANALYZE",
                           "REINDEX",
                           "CREATE TABLE t(x)",
                           "DROP TABLE invoice",
                           "ALTER TABLE invoice ADD COLUMN x",
                           "CREATE TEMP TABLE t(x)",
                           "CREATE INDEX i ON invoice(cents)",
                           "",
                           "-- nothing",
                           "INSERT INTO invoice VALUES('a', 1); INSERT INTO invoice VALUES('b', 2)",
                           "SELECT 1; COMMIT",
                           "INSERT OR ROLLBACK INTO invoice VALUES('a', 1)"}) {
    const auto refused = run(plain(text));
    EXPECT_EQ(code(refused), Code::sql_refused) << text;
  }
  ASSERT_TRUE(run({.text = "INSERT INTO invoice VALUES('i-1', 1); -- a comment may follow\n"}));
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices(), (Rows{{"i-1", 1}}));
}

TEST_P(StoreSql, ARefusalSaysWhatWasRefused) {
  EXPECT_EQ(run(plain("PRAGMA journal_mode")).error().field("refused"), "PRAGMA journal_mode");
  EXPECT_NE(run(plain("COMMIT")).error().message().find("COMMIT"), std::string::npos);
  EXPECT_NE(run(plain("DELETE FROM log")).error().message().find("'log'"), std::string::npos);
}

TEST_P(StoreSql, TheStoresOwnTablesAreReadOnlyForTheApplication) {
  write(*store_, created("a"));
  for (const char* table : {"log", "heads", "machines", "ephemeral", "pawl_meta", "LOG"}) {
    const std::string name = table;
    EXPECT_EQ(code(run(plain("DELETE FROM " + name))), Code::sql_refused) << table;
  }
  EXPECT_FALSE(run(plain("DELETE FROM sqlite_schema")));
  EXPECT_EQ(code(run(plain("UPDATE heads SET state = 'x'"))), Code::sql_refused);
  EXPECT_EQ(code(run(plain("INSERT INTO machines(name) VALUES('x')"))), Code::sql_refused);
  EXPECT_EQ(store_->query(plain("SELECT count(*) FROM log")).value(), (Rows{{1}}));
}

TEST_P(StoreSql, AStatementMayReadInATransition) {
  EXPECT_TRUE(run(plain("SELECT count(*) FROM invoice")));
  EXPECT_TRUE(run({.text = "INSERT INTO invoice VALUES('i', 1) RETURNING id", .expect = 1}, "l"));
}

TEST_P(StoreSql, AQueryOnlyReads) {
  for (const char* text : {"INSERT INTO invoice VALUES('a', 1)", "DELETE FROM log", "PRAGMA user_version",
                           "BEGIN", "VACUUM", "CREATE TABLE t(x)", "SELECT 1; SELECT 2", ""}) {
    EXPECT_EQ(code(store_->query(plain(text))), Code::sql_refused) << text;
  }
  EXPECT_EQ(code(store_->query(plain("SELECT nothing FROM invoice"))), Code::sql_failed);
}

TEST_P(StoreSql, AQueryThatTakesTooLongIsEndedAndSaysWhichOptionIsTheLimit) {
  limit_queries({.timeout = std::chrono::milliseconds(1)});
  for (int i = 0; i < 6; ++i) {  // no connection is lost by it
    const auto ended = store_->query(endless_query());
    ASSERT_EQ(code(ended), Code::timed_out);
    EXPECT_EQ(ended.error().field("limit"), "0.001s");
    EXPECT_NE(ended.error().message().find("query_limits.timeout"), std::string::npos);
  }
  ASSERT_TRUE(run(plain("INSERT INTO invoice VALUES('i-1', 1)")));
  ASSERT_TRUE(store_->commit()) << "the store goes on";
}

TEST_P(StoreSql, AResultWithTooManyRowsIsRefused) {
  limit_queries({.rows = 3});
  EXPECT_EQ(store_->query({.text = "SELECT ?1", .rows = {{1}, {2}, {3}}}).value(), (Rows{{1}, {2}, {3}}));
  const auto refused = store_->query(plain(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT i FROM n"));  // without an end
  ASSERT_EQ(code(refused), Code::too_large);
  EXPECT_EQ(refused.error().field("option"), "query_limits.rows");
  EXPECT_EQ(refused.error().field("limit"), "3");
  EXPECT_EQ(store_->query(plain("SELECT 7")).value(), (Rows{{7}})) << "the store goes on";
}

TEST_P(StoreSql, AResultWithTooManyBytesIsRefused) {
  limit_queries({.bytes = 10});
  const Rows values{{"12345", Blob{"67890"}}};
  EXPECT_EQ(store_->query({.text = "SELECT ?1, ?2", .rows = values}).value(), values);
  const auto refused = store_->query({.text = "SELECT ?1", .rows = {{"123456"}, {"78901"}}});
  ASSERT_EQ(code(refused), Code::too_large);
  EXPECT_EQ(refused.error().field("option"), "query_limits.bytes");
}

TEST_P(StoreSql, LimitsMustBePositive) {
  for (const QueryLimits& limits :
       {QueryLimits{.timeout = Duration::zero()}, QueryLimits{.rows = 0}, QueryLimits{.bytes = 0}}) {
    EXPECT_EQ(code(place_->open({.query_limits = limits})), Code::invalid_argument);
  }
}

TEST_P(StoreSql, AQueryEndsWhenItsCallerAsksIt) {
  std::jthread asks([&](const std::stop_token& stop) {
    EXPECT_EQ(code(store_->query(endless_query(), stop)), Code::cancelled);
  });
  asks.request_stop();
  asks.join();
  EXPECT_EQ(store_->query(plain("SELECT 7")).value(), (Rows{{7}})) << "the others go on";
}

TEST_P(StoreSql, ClosingEndsQueriesThatRunOrWait) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(code(store_->query(endless_query())), Code::stopped); });
  }
  store_->stop_queries();
  threads.clear();
  EXPECT_EQ(code(store_->query(plain("SELECT 7"))), Code::stopped);
}

TEST_P(StoreSql, TheSchemaIsDurableAndMayBeStatedAgain) {
  const std::vector schema{plain("CREATE TABLE IF NOT EXISTS invoice(id TEXT PRIMARY KEY)"),
                           plain("CREATE INDEX IF NOT EXISTS by_cents ON invoice(cents)"),
                           plain("INSERT INTO invoice VALUES('i-1', 1)")};
  ASSERT_TRUE(store_->execute(schema));
  store_ = crash(std::move(store_));
  EXPECT_EQ(invoices(), (Rows{{"i-1", 1}}));
}

TEST_P(StoreSql, AFailingSchemaLeavesNothing) {
  const std::vector schema{plain("CREATE TABLE other(id TEXT)"), plain("CREATE TABLE invoice(id TEXT)")};
  EXPECT_EQ(code(store_->execute(schema)), Code::sql_failed);
  EXPECT_EQ(code(store_->query(plain("SELECT * FROM other"))), Code::sql_failed);
  EXPECT_TRUE(run(plain("INSERT INTO invoice VALUES('i', 1)"))) << "the store goes on";
}

TEST_P(StoreSql, TheSchemaCannotTouchTheStoresOwnTables) {
  for (const char* text : {"DROP TABLE log", "ALTER TABLE heads ADD COLUMN x", "CREATE INDEX i ON log(state)",
                           "CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END", "DELETE FROM log",
                           "PRAGMA user_version=1", "COMMIT", "VACUUM", "CREATE TEMP TABLE t(x)"}) {
    EXPECT_EQ(code(store_->execute(std::vector{plain(text)})), Code::sql_refused) << text;
  }
}

TEST_P(StoreSql, ATriggerOfTheApplicationCannotWriteTheStoresTables) {
  const std::vector schema{plain("CREATE TRIGGER t AFTER INSERT ON invoice BEGIN DELETE FROM log; END")};
  const auto made = store_->execute(schema);
  EXPECT_TRUE(!made || code(run(plain("INSERT INTO invoice VALUES('i', 1)"))) == Code::sql_refused);
}

TEST_P(StoreSql, AChangedSchemaIsSeenByStatementsThatRanBefore) {
  const auto insert = plain("INSERT INTO invoice VALUES('i-1', 1)");
  ASSERT_TRUE(run(insert));
  ASSERT_TRUE(store_->commit());
  ASSERT_EQ(invoices().size(), 1U);
  ASSERT_TRUE(store_->execute(
      std::vector{plain("DROP TABLE invoice"),
                  plain("CREATE TABLE invoice(id TEXT, cents INTEGER, note TEXT NOT NULL)")}));
  EXPECT_EQ(code(run(insert)), Code::sql_failed);
  EXPECT_TRUE(invoices().empty());
}

TEST_P(StoreSql, ManyDifferentStatementsWork) {
  for (int i = 0; i < 200; ++i) {
    const auto text = "INSERT INTO invoice VALUES('i-" + std::to_string(i) + "', " + std::to_string(i) + ")";
    ASSERT_TRUE(run({.text = text, .expect = 1}, "k" + std::to_string(i)));
  }
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(invoices().size(), 200U);
}

TEST_P(StoreSql, TheSchemaWaitsForTheOpenBatch) {
  ASSERT_TRUE(join(*store_, created("k")));
  EXPECT_EQ(code(store_->execute(std::vector{plain("CREATE TABLE t(x)")})), Code::invalid_argument);
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(load_all(*store_).size(), 1U);
}

}  // namespace
}  // namespace pawl::test
