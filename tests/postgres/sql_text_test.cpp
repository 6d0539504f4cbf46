// SPDX-License-Identifier: Apache-2.0
// Placeholders, what is refused before the server sees it, and texts that a database text cannot hold.
#include "store/postgres/sql_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/postgres/wire.hpp"
#include "tests/postgres/postgres_place.hpp"

namespace pawl::test {
namespace {

using postgres::Allow;
using postgres::SqlText;

std::string translated(const std::string& text) { return SqlText::scan(text).translated; }
std::string refusal(const std::string& text, Allow allow = Allow::write) {
  return postgres::refused(SqlText::scan(text), allow, "pawl").value_or("");
}

TEST(SqlTextTranslation, PlaceholdersBecomeThoseOfTheServer) {
  EXPECT_EQ(translated("SELECT ?1, ?2 + ?12"), "SELECT $1, $2 + $12");
  EXPECT_EQ(SqlText::scan("SELECT ?1, ?12").parameters, 12U);
}

TEST(SqlTextTranslation, OnlyPlaceholdersAreTouched) {
  for (const char* text : {"SELECT '?1'", "SELECT 'it''s ?1'", R"(SELECT E'\'?1')", R"(SELECT "?1")",
                           "SELECT 1 -- ?1", "SELECT 1 /* ?1 /* ?2 */ ?3 */", "SELECT $$ ?1 $$",
                           "SELECT $a$ ?1 $$ ?2 $a$", "SELECT data ? 'key'", "SELECT data ?| array['a']"}) {
    EXPECT_EQ(translated(text), text);
    EXPECT_EQ(SqlText::scan(text).parameters, 0U) << text;
  }
  EXPECT_EQ(translated("SELECT '?1', ?1 -- ?2\n, ?2"), "SELECT '?1', $1 -- ?2\n, $2");
}

TEST(SqlTextGuard, ASemicolonInAStringDoesNotEndAStatement) {
  EXPECT_EQ(refusal("INSERT INTO t VALUES('a; DELETE FROM log')"), "");
  EXPECT_EQ(refusal("SELECT 1; -- done"), "");
  EXPECT_EQ(refusal("SELECT 1; SELECT 2"), "a text of several statements");
  EXPECT_EQ(refusal("SELECT 1;;"), "");
}

TEST(SqlTextGuard, WhatReachesBeyondTheTransactionIsRefused) {
  for (const char* text : {"SET synchronous_commit = off",
                           "RESET ALL",
                           "COPY t FROM PROGRAM 'id'",
                           "COPY t TO '/tmp/x'",
                           "DO $$ BEGIN END $$",
                           "CALL p()",
                           "LISTEN x",
                           "NOTIFY x",
                           "LOCK TABLE t",
                           "GRANT ALL ON t TO public",
                           "PREPARE TRANSACTION 'x'",
                           "SELECT set_config('synchronous_commit', 'off', true)",
                           "SELECT pg_terminate_backend(1)",
                           "SELECT pg_advisory_lock(1)",
                           "SELECT pg_try_advisory_lock(1)",
                           "SELECT dblink_exec('x', 'y')",
                           "SELECT pg_notify('pawl_pawl', 'entries 9')",
                           "SELECT * INTO copy FROM t",
                           "TRUNCATE t",
                           "EXECUTE x",
                           "LOAD 'x'",
                           "SELECT U&\"\\006cog\" FROM t"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
  EXPECT_EQ(refusal("SELECT pg_advisory_xact_lock(1)"), "");
}

TEST(SqlTextGuard, TheStoresTablesAreNotWritten) {
  for (const char* text :
       {"DELETE FROM log", "delete from only LOG", "DELETE FROM pawl.log", "DELETE FROM \"log\"",
        "UPDATE heads SET a = 1", "UPDATE pawl.anything SET a = 1", "INSERT INTO shards VALUES(1)",
        "DELETE FROM log_p1_1000001", "WITH x AS (DELETE FROM log RETURNING 1) SELECT 1",
        "MERGE INTO heads USING t ON true WHEN MATCHED THEN DELETE"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
  for (const char* text :
       {"SELECT * FROM log", "DELETE FROM other.log", "UPDATE t SET log = 1", "INSERT INTO t(log) VALUES(1)",
        "SELECT 1 FROM t FOR UPDATE", "INSERT INTO t SELECT data FROM log",
        "INSERT INTO t VALUES(1) ON CONFLICT (a) DO UPDATE SET heads = 1"}) {
    EXPECT_EQ(refusal(text), "") << text;
  }
}

TEST(SqlTextGuard, ASchemaMayHoldTheApplicationsOwnThingsOnly) {
  for (const char* text :
       {"DROP TABLE t, log", "DROP TABLE IF EXISTS pawl.heads", "ALTER TABLE log ADD x int",
        "CREATE INDEX ON log(state)", "CREATE TABLE x(a bigint REFERENCES log(seq))",
        "CREATE TABLE x PARTITION OF log DEFAULT", "CREATE ROLE x", "CREATE EXTENSION dblink",
        "ALTER SYSTEM SET fsync = off", "CREATE DATABASE x", "DROP SCHEMA pawl CASCADE",
        "CREATE UNLOGGED TABLE x(a int)", "CREATE TRIGGER x AFTER INSERT ON log EXECUTE FUNCTION f()"}) {
    EXPECT_NE(refusal(text, Allow::define), "") << text;
  }
  for (const char* text :
       {"CREATE TABLE IF NOT EXISTS t(log text)", "ALTER TABLE t ADD COLUMN heads int",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON t(a)", "CREATE OR REPLACE VIEW v AS SELECT * FROM log",
        "DROP TABLE IF EXISTS t", "CREATE TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()"}) {
    EXPECT_EQ(refusal(text, Allow::define), "") << text;
  }
}

RC_GTEST_PROP(WireText, EveryTextComesBack, (const std::string& text)) {
  std::string buffer;
  const std::string stored(postgres::escaped(text, buffer));
  RC_ASSERT(stored.find('\0') == std::string::npos);
  RC_ASSERT(postgres::unescaped(stored) == text);
}

RC_GTEST_PROP(WireText, BytesThatAreNotUtf8ComeBack, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text(bytes.begin(), bytes.end());
  std::string buffer;
  RC_ASSERT(postgres::unescaped(std::string(postgres::escaped(text, buffer))) == text);
}

TEST(WireText, JsonIsStoredAsItIs) {
  const std::string json = R"({"name":"Zoë 🚪","note":"a\u0000b"})";
  std::string buffer;
  EXPECT_EQ(postgres::escaped(json, buffer), json);
}

TEST(WireText, TheServerTakesEveryEscapedText) {
  PAWL_NEEDS_POSTGRES();
  PostgresPlace place;
  auto store = place.open({}).value();
  auto draft = created("k");
  for (int byte = 0; byte < 256; ++byte) draft.data += static_cast<char>(byte);
  draft.data += "\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xe0\x80\x80";
  const auto seq = write(*store, draft);
  EXPECT_EQ(store->head_entry(draft.id, seq).value(), draft.stored(seq));
}

}  // namespace
}  // namespace pawl::test
