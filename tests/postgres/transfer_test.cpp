// SPDX-License-Identifier: Apache-2.0
// Moving a store between SQLite and PostgreSQL: everything arrives, nothing else is touched, and an
// interrupted transfer is simply run again.
#include "store/transfer.hpp"

#include <csignal>
#include <filesystem>

#include "tests/postgres/postgres_place.hpp"
#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

enum class Direction { to_postgres, to_sqlite };

class Transfer : public testing::TestWithParam<Direction> {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }

  bool to_postgres() const { return GetParam() == Direction::to_postgres; }
  std::string sqlite() { return "sqlite:" + directory_.file("pawl.db"); }
  std::string postgres() { return place_->server().url(place_->database(), "&pawl_lease=300ms"); }
  std::string from() { return to_postgres() ? sqlite() : postgres(); }
  std::string to() { return to_postgres() ? postgres() : sqlite(); }
  static std::unique_ptr<Store> open(const std::string& where) {
    return open_store_at({.where = where}).value();
  }
  Result<TransferReport> transfer() { return transfer_store(from(), to(), {}); }

  std::optional<PostgresPlace> place_;
  Directory directory_;
};

/// What a reader can see of a store.
struct Seen {
  std::string incarnation;
  Seq last = 0;
  Seq horizon = 0;
  Time last_at{};
  std::vector<Entry> log;
  std::map<InstanceId, LoadedHead> heads;
  std::vector<Entry> newest;
  std::vector<std::string> ephemerals;
  bool operator==(const Seen&) const = default;
};

Seen see(const std::string& where) {
  const auto store = open_store_at({.where = where, .read_only = true, .create = false}).value();
  const auto info = store->info();
  Seen seen{
      .incarnation = info.incarnation, .last = info.last, .horizon = info.horizon, .last_at = info.last_at};
  seen.log = store->feed(info.horizon, 1'000'000).value();
  seen.heads = load_all(*store);
  for (const auto& [id, head] : seen.heads) {
    seen.newest.push_back(store->head_entry(id, head.seq).value().value());
    const auto values = store->ephemerals(id).value();
    for (const auto& value : values) seen.ephemerals.push_back(value.name + "=" + value.value);
  }
  EXPECT_EQ(problems(*store), "");
  return seen;
}

/// Retention, finished instances, several generations of machines, texts that only one database takes as they
/// are, request ids, ephemeral values, and heads that were not written behind.
void furnish(const std::string& where) {
  const auto store = open_store_at({.where = where}).value();
  const auto drafts = fill(*store, 40);
  for (Seq seq = 1; seq <= 20; ++seq) {
    auto next = after(drafts[static_cast<std::size_t>(seq) - 1], seq, seq % 2 == 0 ? "open" : "gone");
    next.finished = seq % 2 != 0;
    next.extra = seq % 4 == 0 ? R"({"timers":[1]})" : "";
    write(*store, next);
  }
  while (!store->retain(30).value()) continue;
  auto odd = created(std::string("a\0b\1", 4));
  odd.at = at_second(100);
  odd.machine = "window";
  odd.partition = "house";
  odd.data = "\xc3\xa4 \xff" + std::string(1, '\0') + "end";
  ASSERT_TRUE(join(*store, odd, request(7, -3)));
  ASSERT_TRUE(
      store->put(std::vector{Ephemeral{.id = odd.id, .name = "seen", .value = "12", .at = at_second(5)}}));
  ASSERT_TRUE(store->commit());
}

/// An entry for a store that was furnished.
Draft later() {
  auto draft = created("later");
  draft.at = at_second(200);
  return draft;
}

/// What is tried, as soon as the lease of an owner that was killed has run out.
template <class Try>
auto once_free(Try attempt) {
  auto done = attempt();
  while (code(done) == Code::store_locked) done = attempt();
  return done;
}

TEST_P(Transfer, BringsEverything) {
  furnish(from());
  const auto before = see(from());
  const auto done = transfer();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->entries, 31);
  EXPECT_EQ(done->instances, 41);
  EXPECT_FALSE(done->was_there);
  EXPECT_TRUE(see(to()) == before);
  EXPECT_TRUE(see(from()) == before) << "the source is left as it was";
  const auto store = open(to());
  EXPECT_EQ(store->find_request(request(7).id).value().value().content, -3);
  EXPECT_EQ(write(*store, later()), before.last + 1);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Transfer, OfAnEmptyStoreIsOne) {
  open(from());
  ASSERT_TRUE(transfer());
  EXPECT_EQ(write(*open(to()), created("first")), 1);
}

TEST_P(Transfer, IsRefusedWhereRowsOfTheApplicationWouldBeLeftBehind) {
  {
    const auto store = open(from());
    ASSERT_TRUE(store->execute(
        std::vector{plain("CREATE TABLE shelf(x INTEGER)"), plain("CREATE TABLE \"empty shelf\"(x INTEGER)"),
                    plain("CREATE TABLE \"old shelf\"(x INTEGER)"), plain("INSERT INTO shelf VALUES(1)"),
                    plain("INSERT INTO \"old shelf\" VALUES(1)")}));
    write(*store, created("k"));
  }
  const auto refused = transfer();
  ASSERT_EQ(code(refused), Code::invalid_argument);
  EXPECT_EQ(refused.error().field("tables"), "old shelf, shelf");
  const auto done =
      once_free([&] { return transfer_store(from(), to(), {.without_application_tables = true}); });
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->entries, 1);
}

TEST_P(Transfer, IsNotRefusedForTheNoteOfMigrationsWhoseTablesAreEmpty) {
  {
    const auto store = open(from());
    ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE shelf(x INTEGER)"),
                                           plain("CREATE TABLE pawl_migrations(owner TEXT, number BIGINT)"),
                                           plain("INSERT INTO pawl_migrations VALUES('shelves', 1)")}));
    write(*store, created("k"));
  }
  const auto done = transfer();
  ASSERT_TRUE(done) << done.error().to_string();
}

TEST_P(Transfer, ThatIsRunAgainFindsItselfDone) {
  furnish(from());
  ASSERT_TRUE(transfer());
  const auto after_first = see(to());
  const auto again = transfer();
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(again->was_there);
  EXPECT_TRUE(see(to()) == after_first);
}

TEST_P(Transfer, DoesNotGoBackBehindWhatTheTargetHasDoneSince) {
  furnish(from());
  ASSERT_TRUE(transfer());
  write(*open(to()), later());
  const auto there = see(to());
  EXPECT_EQ(code(transfer()), Code::invalid_argument);
  EXPECT_TRUE(see(to()) == there);
}

TEST_P(Transfer, LeavesAnotherStoreAlone) {
  furnish(from());
  write(*open(to()), created("other"));
  const auto there = see(to());
  EXPECT_EQ(code(transfer()), Code::invalid_argument);
  EXPECT_TRUE(see(to()) == there);
}

TEST_P(Transfer, OfAStoreThatIsInUseIsRefused) {
  const auto owner = open(from());
  EXPECT_EQ(code(transfer()), Code::store_locked);
}

TEST_P(Transfer, OfWhatIsNotThereMakesNothing) {
  EXPECT_TRUE(code(transfer()).has_value());
  EXPECT_FALSE(std::filesystem::exists(directory_.file("pawl.db")));
  EXPECT_TRUE(code(open_store_at({.where = to(), .read_only = true, .create = false})).has_value());
}

TEST_P(Transfer, ThatIsKilledIsRunAgain) {
  {
    const auto store = open(from());
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(join(*store, created("k" + std::to_string(i))));
    ASSERT_TRUE(store->commit());
  }
  const auto before = see(from());
  // While it copies, and while it reads the copy again.
  for (const double moment : {0.3, 0.8}) {
    const auto dies = [&](double part) {
      if (part > moment) static_cast<void>(raise(SIGKILL));
    };
    EXPECT_EXIT(
        static_cast<void>(once_free([&] { return transfer_store(from(), to(), {.progress = dies}); })),
        testing::KilledBySignal(SIGKILL), "");
    const auto half = open_store_at({.where = to(), .read_only = true, .create = false});
    EXPECT_TRUE(!half || (*half)->info().last == 0) << "half a store";
  }
  const auto done = once_free([&] { return transfer(); });
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_FALSE(done->was_there);
  EXPECT_TRUE(see(to()) == before);
}

INSTANTIATE_TEST_SUITE_P(Direction, Transfer, testing::Values(Direction::to_postgres, Direction::to_sqlite),
                         [](const auto& direction) {
                           return direction.param == Direction::to_postgres ? "ToPostgres" : "ToSqlite";
                         });

TEST(TransferToPostgres, WhoseCopyDiffersIsTakenBack) {
  PAWL_NEEDS_POSTGRES();
  PostgresPlace place;
  const Directory directory;
  const auto from = "sqlite:" + directory.file("pawl.db");
  const auto to = place.server().url(place.database());
  furnish(from);
  // The schema as an administrator has prepared it, with something in it that spoils what is written.
  open_store_at({.where = to}).value().reset();
  place.sql("UPDATE pawl.shards SET epoch = 0; UPDATE pawl.leases SET epoch = 0");
  place.sql(
      "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.data = '{}'; RETURN NEW; "
      "END$$; "
      "CREATE TRIGGER spoil BEFORE INSERT ON pawl.log FOR EACH ROW EXECUTE FUNCTION public.spoil()");
  EXPECT_EQ(code(transfer_store(from, to, {})), Code::store_corrupt);
  EXPECT_EQ(place.sql("SELECT count(*) FROM pawl.log"), "0");
  place.sql("DROP TRIGGER spoil ON pawl.log");
  EXPECT_TRUE(transfer_store(from, to, {}));
}

}  // namespace
}  // namespace pawl::test
