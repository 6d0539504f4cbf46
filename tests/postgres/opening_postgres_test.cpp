// SPDX-License-Identifier: Apache-2.0
// What a server, a URL and a role must be like for a store to be opened.
#include <gmock/gmock.h>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/proxy.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Opening : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }
  Result<std::unique_ptr<Store>> open(const std::string& parameters = "") {
    return open_postgres({.url = place_->server().url(place_->database(), parameters)});
  }

  std::optional<PostgresPlace> place_;
};

TEST_F(Opening, ASettingThatLosesCommitsIsRefusedWithoutTheUnsafeFlag) {
  place_->sql("ALTER DATABASE " + place_->database() + " SET synchronous_commit = off");
  const auto refused = open();
  ASSERT_EQ(code(refused), Code::store_unsafe);
  EXPECT_THAT(refused.error().message(), HasSubstr("synchronous_commit = off"));
  const auto accepted = open("&pawl_unsafe=1");
  ASSERT_TRUE(accepted);
  EXPECT_THAT((*accepted)->info().weakened_guarantees,
              testing::Contains(HasSubstr("synchronous_commit = off")));
}

TEST_F(Opening, AServerWithoutASynchronousStandbyIsReportedAsAReducedGuarantee) {
  const auto store = open().value();
  EXPECT_THAT(store->info().weakened_guarantees, testing::ElementsAre(HasSubstr("no synchronous standby")));
}

TEST_F(Opening, TheViewShowsWhenTheNewestGenerationBegan) {
  auto store = open().value();
  auto draft = created("k");
  draft.finished = true;
  const auto seq = write(*store, draft);
  auto second = created("k");
  second.version = 2;
  second.generation = 2;
  second.prev = seq;
  second.at = at_second(60);
  write(*store, second);
  const std::string query =
      "SELECT (extract(epoch FROM created_at) * 1000000)::bigint FROM pawl.pawl_instances";
  const auto begun = std::to_string(at_second(60).time_since_epoch().count());
  EXPECT_EQ(place_->sql(query), begun) << "as long as only the log has it";
  store.reset();
  EXPECT_EQ(place_->sql(query), begun) << "once the head is written";
}

TEST_F(Opening, ALowerTimelineIsRefused) {
  open().value().reset();
  place_->sql("UPDATE pawl.pawl_meta SET value = '7' WHERE name = 'timeline'");
  const auto refused = open();
  ASSERT_EQ(code(refused), Code::store_diverged);
  EXPECT_EQ(refused.error().field("seen"), "7");
}

TEST_F(Opening, AfterAFailoverNumbersThatMayHaveBeenSeenAreLeftOut) {
  auto store = open().value();
  write(*store, created("a"));
  store.reset();
  place_->sql("UPDATE pawl.pawl_meta SET value = '0' WHERE name = 'timeline'");
  store = open().value();
  EXPECT_GT(write(*store, created("b")), 1'000'000);
  EXPECT_EQ(store->feed(1, 10).value().size(), 1U);
}

TEST_F(Opening, ACopyInAnotherClusterIsAnotherIncarnation) {
  auto store = open().value();
  const auto incarnation = store->info().incarnation;
  store.reset();
  place_->sql("UPDATE pawl.pawl_meta SET value = '12345' WHERE name = 'system'");
  store = open().value();
  EXPECT_NE(store->info().incarnation, incarnation);
}

TEST_F(Opening, ACopyOfTheDatabaseInTheSameClusterIsAnotherIncarnation) {
  auto store = open().value();
  fill(*store, 3);
  const auto original = store->info();
  store.reset();
  const auto copy = place_->database() + "_copy";
  place_->server().run("postgres", "CREATE DATABASE " + copy + " TEMPLATE " + place_->database());
  const auto url = place_->server().url(copy);
  auto copied = open_postgres({.url = url});
  ASSERT_TRUE(copied) << copied.error().to_string();
  const auto incarnation = (*copied)->info().incarnation;
  EXPECT_NE(incarnation, original.incarnation);
  EXPECT_EQ((*copied)->info().last, original.last);
  write(**copied, created("goes on"));
  copied->reset();
  EXPECT_EQ(open_postgres({.url = url}).value()->info().incarnation, incarnation) << "once";
  EXPECT_EQ(open().value()->info().incarnation, original.incarnation) << "the original is what it was";
  place_->server().run("postgres", "DROP DATABASE " + copy);
}

TEST_F(Opening, ADumpThatIsRestoredInTheSameClusterIsAnotherIncarnation) {
  auto store = open().value();
  fill(*store, 3);
  const auto original = store->info();
  store.reset();
  const auto copy = place_->database() + "_restored";
  place_->server().run("postgres", "CREATE DATABASE " + copy);
  place_->server().copy_by_dump(place_->database(), copy);
  auto restored = open_postgres({.url = place_->server().url(copy)});
  ASSERT_TRUE(restored) << restored.error().to_string();
  EXPECT_NE((*restored)->info().incarnation, original.incarnation);
  EXPECT_EQ((*restored)->feed(0, 10).value().size(), 3U);
  restored->reset();
  place_->server().run("postgres", "DROP DATABASE " + copy + " WITH (FORCE)");
}

TEST_F(Opening, AStoreThatIsDroppedAndRestoredInItsDatabaseIsAnotherIncarnation) {
  auto store = open().value();
  const auto original = store->info();
  store.reset();
  const auto copy = place_->database() + "_kept";
  place_->server().run("postgres", "CREATE DATABASE " + copy);
  place_->server().copy_by_dump(place_->database(), copy);
  place_->sql("DROP SCHEMA pawl CASCADE");
  place_->server().copy_by_dump(copy, place_->database());
  EXPECT_NE(open().value()->info().incarnation, original.incarnation);
  place_->server().run("postgres", "DROP DATABASE " + copy);
}

TEST_F(Opening, AnOwnerOfACopyLeavesTheOwnerOfTheOriginalAlone) {
  auto store = open().value();
  const auto copy = place_->database() + "_live";
  place_->server().run("postgres", "CREATE DATABASE " + copy);
  place_->server().copy_by_dump(place_->database(), copy);
  const auto backend = owner_backend(*place_);
  auto copied = open_postgres({.url = place_->server().url(copy), .take_over = true});
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_EQ(place_->sql("SELECT count(*) FROM pg_stat_activity WHERE pid = " + backend), "1");
  write(*store, created("a"));
  EXPECT_EQ(owner_backend(*place_), backend) << "the original has not been interrupted";
  copied->reset();
  place_->server().run("postgres", "DROP DATABASE " + copy + " WITH (FORCE)");
}

TEST_F(Opening, ANewerSchemaIsRefused) {
  open().value().reset();
  place_->sql("UPDATE pawl.pawl_meta SET value = '99' WHERE name = 'schema'");
  EXPECT_EQ(code(open()), Code::store_newer);
  EXPECT_EQ(code(place_->open_read_only()), Code::store_newer);
}

TEST_F(Opening, StoresInDifferentSchemasAreIndependent) {
  auto first = open().value();
  auto second = open("&pawl_schema=other").value();
  write(*first, created("a"));
  EXPECT_TRUE(second->feed(0, 10).value().empty());
  EXPECT_NE(first->info().incarnation, second->info().incarnation);
}

TEST_F(Opening, ARoleWithoutPrivilegesOfItsOwnIsEnough) {
  const auto role = "app_" + place_->database();
  place_->sql("CREATE ROLE " + role +
              " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE; CREATE SCHEMA pawl AUTHORIZATION " + role +
              "; CREATE SCHEMA app AUTHORIZATION " + role + "; ALTER ROLE " + role +
              " SET search_path = app");
  auto options = place_->options();
  options.url = place_->server().url(place_->database());
  options.url.replace(options.url.find("postgres@"), 9, role + "@");
  auto store = open_postgres(options);
  ASSERT_TRUE(store) << store.error().to_string();
  ASSERT_TRUE((*store)->execute(std::vector{plain("CREATE TABLE t(x INTEGER)")}));
  ASSERT_TRUE(join(**store, {created("a")}, {plain("INSERT INTO t VALUES(1)")}));
  ASSERT_TRUE((*store)->commit());
  EXPECT_EQ(place_->sql("SELECT count(*) FROM app.t"), "1");
  options.take_over = true;
  auto next = open_postgres(options);
  ASSERT_TRUE(next) << next.error().to_string();
  write(**next, created("b"));
  store->reset();
  next->reset();
  place_->sql("DROP SCHEMA pawl, app CASCADE; DROP ROLE " + role);
}

TEST_F(Opening, TlsOptionsReachTheDriver) {
  const Proxy proxy(place_->server());
  const auto plain_server = open_postgres({.url = proxy.url(place_->database(), "sslmode=require")});
  ASSERT_EQ(code(plain_server), Code::store_io);
  EXPECT_THAT(plain_server.error().message(), HasSubstr("does not support SSL"));
  const auto no_root = open_postgres(
      {.url = proxy.url(place_->database(), "sslmode=verify-full&sslrootcert=/nowhere/root.crt")});
  ASSERT_EQ(code(no_root), Code::store_io);
}

TEST_F(Opening, ADatabaseOfAnotherEncodingIsRefused) {
  const std::string name = place_->database() + "_latin";
  place_->sql("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
  EXPECT_EQ(code(open_postgres({.url = place_->server().url(name)})), Code::invalid_argument);
  place_->sql("DROP DATABASE " + name + " WITH (FORCE)");
}

TEST(PostgresUrl, NoErrorHoldsThePassword) {
  for (const char* url :
       {"postgresql://user:s3cr3t@127.0.0.1:1/db", "postgresql://user:s3cr3t@[::1/db",
        "postgresql://user:s3cr3t@host:port:port/db", "postgresql://127.0.0.1:1/db?password=s3cr3t",
        "postgresql://user:s3cr3t@127.0.0.1:1/db?sslmod=require",
        "postgresql://user:s3cr3t@127.0.0.1:1/db?pawl_leas=1s",
        "postgresql://user:s3cr3t@127.0.0.1:1/db?pawl_lease=soon"}) {
    const auto refused = open_postgres({.url = url});
    ASSERT_FALSE(refused) << url;
    EXPECT_THAT(refused.error().to_string(), Not(HasSubstr("s3cr3t")));
  }
  const auto unknown = open_store_at({.where = "postgress://user:s3cr3t@127.0.0.1/db"});
  ASSERT_EQ(code(unknown), Code::invalid_argument);
  EXPECT_THAT(unknown.error().to_string(), Not(HasSubstr("s3cr3t")));
}

TEST(PostgresUrl, AParameterOfOursThatDoesNotExistIsNamed) {
  const auto refused = open_postgres({.url = "postgresql://127.0.0.1:1/db?pawl_leas=1s"});
  ASSERT_EQ(code(refused), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("pawl_leas"));
}

TEST(PostgresUrl, AParameterThatNobodyKnowsIsNamed) {
  const auto refused = open_postgres({.url = "postgresql://127.0.0.1:1/db?sslmod=require"});
  ASSERT_EQ(code(refused), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), HasSubstr("sslmod"));
}

}  // namespace
}  // namespace pawl::test
