// SPDX-License-Identifier: Apache-2.0
// Conformance: tables that change from release to release.
#include <fstream>
#include <iterator>

#include "kernel/engine/migrate.hpp"
#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

using Migrations = std::map<std::string, std::vector<Migration>>;

const Migration kTea{plain("CREATE TABLE IF NOT EXISTS tea(name TEXT NOT NULL)"),
                     plain("INSERT INTO tea VALUES('assam')")};
const Migration kTeaMinutes{plain("ALTER TABLE tea ADD COLUMN minutes BIGINT"),
                            plain("UPDATE tea SET minutes = 4")};

TEST_P(StoreSql, EachMigrationIsAppliedOnce) {
  for (int start = 0; start < 3; ++start) ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea}}}));
  EXPECT_EQ(store_->query(plain("SELECT name FROM tea")).value(), (Rows{{"assam"}}));
  store_ = reopen(std::move(store_));
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea}}}));
  EXPECT_EQ(store_->query(plain("SELECT name FROM tea")).value(), (Rows{{"assam"}}));
}

TEST_P(StoreSql, ALaterReleaseChangesTheTablesAndKeepsTheRows) {
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea}}}));
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea, kTeaMinutes}}}));
  EXPECT_EQ(store_->query(plain("SELECT name, minutes FROM tea")).value(), (Rows{{"assam", 4}}));
}

TEST_P(StoreSql, TablesFromBeforeThereWereMigrationsAreTakenOver) {
  ASSERT_TRUE(store_->execute(std::vector{plain("CREATE TABLE IF NOT EXISTS tea(name TEXT NOT NULL)"),
                                          plain("INSERT INTO tea VALUES('ceylon')")}));
  const Migration made_anew{plain("CREATE TABLE IF NOT EXISTS tea(name TEXT NOT NULL)")};
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {made_anew, kTeaMinutes}}}));
  EXPECT_EQ(store_->query(plain("SELECT name, minutes FROM tea")).value(), (Rows{{"ceylon", 4}}));
}

TEST_P(StoreSql, AMigrationThatFailsLeavesNothingAndIsNamed) {
  const Migration broken{plain("ALTER TABLE tea ADD COLUMN minutes BIGINT"),
                         plain("INSERT INTO nowhere VALUES(1)")};
  const auto failed = migrate(*store_, Migrations{{"tea", {kTea, broken}}});
  ASSERT_EQ(code(failed), Code::sql_failed);
  EXPECT_NE(failed.error().to_string().find("migration 2 of \"tea\""), std::string::npos)
      << failed.error().to_string();
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea, kTeaMinutes}}}));
  EXPECT_EQ(store_->query(plain("SELECT name, minutes FROM tea")).value(), (Rows{{"assam", 4}}));
}

TEST_P(StoreSql, TablesOfANewerReleaseAreRefused) {
  ASSERT_TRUE(migrate(*store_, Migrations{{"tea", {kTea, kTeaMinutes}}}));
  const auto refused =
      migrate(*store_, Migrations{{"cups", {{plain("CREATE TABLE cups(n BIGINT)")}}}, {"tea", {kTea}}});
  ASSERT_EQ(code(refused), Code::store_newer);
  EXPECT_EQ(refused.error().field("owner"), "tea");
  EXPECT_FALSE(store_->query(plain("SELECT n FROM cups"))) << "of the others nothing is applied either";
  ASSERT_TRUE(migrate(*store_, Migrations{{"cups", {{plain("CREATE TABLE cups(n BIGINT)")}}}}))
      << "who is not there is not asked";
}

TEST_P(StoreSql, TheTablesOfTheExampleSystemCanBeMade) {
  std::ifstream file(PAWL_SOURCE_DIR "/examples/hello_system.cpp");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  const auto statement = [&](const std::string& begin) {
    const auto at = source.find("\"" + begin);
    EXPECT_NE(at, std::string::npos) << begin;
    return plain(source.substr(at + 1, source.find('"', at + 1) - at - 1));
  };
  ASSERT_TRUE(migrate(*store_, Migrations{{"hello", {{statement("CREATE TABLE hello_book")}}}}));
  auto insert = statement("INSERT INTO hello_book");
  insert.rows = {{"Hello!"}};
  ASSERT_TRUE(run(insert));
  ASSERT_TRUE(store_->commit());
  EXPECT_EQ(store_->query(statement("SELECT line FROM hello_book")).value(), (Rows{{"Hello!"}}));
}

}  // namespace
}  // namespace pawl::test
