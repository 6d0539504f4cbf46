// SPDX-License-Identifier: Apache-2.0
// Large batches are copied into the log while they are decided. They are stored, refused and taken back as
// small ones are, whether their commit travels ahead of them, as it does after a batch of entries alone, or
// not.
#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

enum class Before : std::uint8_t { nothing, entries_alone };

class Copying : public testing::TestWithParam<Before> {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }

  std::unique_ptr<Store> open(std::int64_t partition_entries = 1'000'000, std::int64_t flush_every = 10'000) {
    auto options = place_->options();
    options.partition_entries = partition_entries;
    options.flush_every = flush_every;
    auto store = open_postgres(options).value();
    if (GetParam() == Before::nothing) return store;
    write(*store, created("the first of its machine"));
    write(*store, created("nothing but an entry"));
    before_ = store->info().last;
    return store;
  }
  std::unique_ptr<Store> take_over() {
    auto options = place_->options();
    options.take_over = true;
    return open_postgres(options).value();
  }
  using Keys = std::vector<std::string>;
  Keys keys(Store& store) const {
    Keys found;
    const auto entries = store.feed(before_, 10'000).value();
    for (const auto& entry : entries) found.push_back(entry.key);
    return found;
  }
  static Keys join_many(Store& store, const std::string& prefix, int count) {
    Keys keys;
    for (int i = 0; i < count; ++i) {
      keys.push_back(prefix + std::to_string(i));
      EXPECT_TRUE(join(store, created(keys.back())));
    }
    return keys;
  }
  /// Waits until the owner's backend waits for rows.
  void wait_for_copy() {
    wait_until(*place_,
               "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%COPY%FROM STDIN%' AND wait_event = "
               "'ClientRead' AND state = 'active' AND pid = " +
                   owner_backend(*place_),
               "1");
  }

  std::string entries() {
    return place_->sql("SELECT count(*) FROM pawl.log WHERE seq > " + std::to_string(before_));
  }

  std::optional<PostgresPlace> place_;
  Seq before_ = 0;  // what is not a test's own
};

INSTANTIATE_TEST_SUITE_P(After, Copying, testing::Values(Before::nothing, Before::entries_alone),
                         [](const auto& info) {
                           return info.param == Before::nothing ? "Nothing" : "EntriesAlone";
                         });

TEST_P(Copying, BatchesOfEverySizeAreStoredInOrder) {
  auto store = open();
  Keys expected;
  for (const int size : {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500}) {
    const auto keys = join_many(*store, std::to_string(size) + "-", size);
    expected.insert(expected.end(), keys.begin(), keys.end());
    const auto done = store->commit();
    ASSERT_TRUE(done) << size << ": " << done.error().to_string();
  }
  EXPECT_EQ(keys(*store), expected);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Copying, EveryByteComesBackAsItWasWritten) {
  using namespace std::string_literals;
  const std::vector<std::string> texts{
      "\\N",      "\\.",   "\\\\x",    "tab\tand\nline\r\n", "'quoted' \"twice\"",
      "nul\0in"s, "\0"s,   "\1escape", "\xff\xfe",           "\xc3\xa4\xe2\x82\xac",
      "{}",       "a,b;c", "$1 %s {s}"};
  auto store = open();
  std::vector<Entry> expected;
  for (std::size_t i = 0; i < 200; ++i) {
    auto draft = created("k" + std::to_string(i));
    draft.state = texts[i % texts.size()];
    draft.event = texts[(i + 1) % texts.size()];
    draft.payload = texts[(i + 2) % texts.size()];
    draft.data = texts[(i + 3) % texts.size()];
    draft.extra = texts[(i + 4) % texts.size()];
    expected.push_back(draft.stored(join(*store, draft).value()));
  }
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(before_, 1000).value(), expected);
}

TEST_P(Copying, ABatchMayFillSeveralPartitions) {
  auto store = open(100);
  auto expected = join_many(*store, "a", 350);
  ASSERT_TRUE(store->commit());
  const auto more = join_many(*store, "b", 170);
  const auto done = store->commit();
  ASSERT_TRUE(done) << done.error().to_string();
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(keys(*store), expected);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Copying, ABatchIsRefusedWhereTheEpochHasMoved) {
  auto store = open();
  place_->sql("UPDATE pawl.shards SET epoch = epoch + 1");
  join_many(*store, "stale", 300);
  EXPECT_EQ(code(store->commit()), Code::store_fenced);
  EXPECT_EQ(entries(), "0");
}

TEST_P(Copying, ATakeoverEndsACopyThatIsUnderWay) {
  auto first = open();
  join_many(*first, "stale", 100);
  wait_for_copy();
  auto second = take_over();
  write(*second, created("a"));
  EXPECT_EQ(code(first->commit()), Code::store_fenced);
  EXPECT_EQ(keys(*second), (Keys{"a"}));
}

TEST_P(Copying, ABatchIsSentAgainWhereTheServerEndedItsCopy) {
  auto store = open();
  const auto expected = join_many(*store, "a", 300);
  wait_for_copy();
  place_->sql("SELECT pg_terminate_backend(" + owner_backend(*place_) + ")");
  const auto done = store->commit();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(keys(*store), expected);
}

TEST_P(Copying, ARequestIdIsLookedUpInTheMiddleOfIt) {
  auto store = open();
  ASSERT_TRUE(join(*store, created("first"), request(1)));
  ASSERT_TRUE(store->commit());
  auto expected = join_many(*store, "a", 100);
  EXPECT_EQ(code(join(*store, created("second"), request(1))), Code::request_id_reused);
  const auto more = join_many(*store, "b", 100);
  ASSERT_TRUE(store->commit());
  expected.insert(expected.begin(), "first");
  expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(keys(*store), expected);
}

TEST_P(Copying, NothingIsLeftOfABatchThatIsDiscardedInTheMiddleOfIt) {
  auto store = open();
  join_many(*store, "gone", 100);
  wait_for_copy();
  store->discard();
  join_many(*store, "a", 100);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(entries(), "100");
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Copying, AMachineThatIsNewIsWrittenWithItsFirstBatch) {
  auto store = open();
  for (int i = 0; i < 150; ++i) {
    auto draft = created("k" + std::to_string(i));
    draft.machine = i < 100 ? "door" : "window";
    ASSERT_TRUE(join(*store, draft));
  }
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(
      place_->sql("SELECT count(*) FROM pawl.log JOIN pawl.machines m ON m.number = machine WHERE name = "
                  "'window'"),
      "50");
}

TEST_P(Copying, WhatTurnsUpInTheMiddleOfItIsCommittedWithIt) {
  auto store = open();
  ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE t(x INTEGER)")}));
  for (int round = 0; round < 3; ++round) {  // only the first comes unexpected
    const auto name = std::to_string(round);
    auto expected = keys(*store);
    for (const auto& key : join_many(*store, "a" + name + "-", 100)) expected.push_back(key);
    wait_for_copy();
    ASSERT_TRUE(join(*store, {created("sql" + name)}, {plain("INSERT INTO t VALUES(1)")}));
    expected.push_back("sql" + name);
    for (const auto& key : join_many(*store, "b" + name + "-", 100)) expected.push_back(key);
    ASSERT_TRUE(store->put(
        std::vector{Ephemeral{.id = created("a").id, .name = "n" + name, .value = "1", .at = {}}}));
    const auto done = store->commit();
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(keys(*store), expected);
  }
  EXPECT_EQ(place_->sql("SELECT count(*) FROM t"), "3");
  EXPECT_EQ(store->ephemerals(created("a").id).value().size(), 3U);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Copying, HeadsAreWrittenBehindAllTheSame) {
  auto store = open(1'000'000, 300);
  for (int round = 0; round < 12; ++round) {
    join_many(*store, std::to_string(round) + "-", 100);
    ASSERT_TRUE(store->commit());
  }
  EXPECT_GE(std::stoi(place_->sql("SELECT count(*) FROM pawl.heads")), 900);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Copying, AnEntryThatTheServerDoesNotStoreIsNeverAcknowledged) {
  for (const int size : {1, 100}) {  // inserted and copied
    place_.emplace();
    auto store = open();
    place_->sql(
        "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.key = ''a0'' THEN "
        "RETURN NULL; END IF; RETURN NEW; END'; CREATE TRIGGER swallow BEFORE INSERT ON pawl.log FOR EACH "
        "ROW EXECUTE FUNCTION swallow()");
    join_many(*store, "a", size);
    const auto failed = store->commit();
    ASSERT_EQ(code(failed), Code::store_corrupt) << size;
    EXPECT_NE(failed.error().message().find("entries"), std::string::npos) << failed.error().to_string();
    EXPECT_EQ(code(store->commit()), Code::store_poisoned);
  }
}

TEST_P(Copying, AReaderElsewhereIsToldOfIt) {
  auto store = open();
  auto reader = place_->open_read_only().value();
  ASSERT_FALSE(reader->wait(before_, Duration::zero()).value());  // listens from here on
  Session listener(*place_);
  listener.run("LISTEN pawl_pawl");
  join_many(*store, "a", 100);
  ASSERT_TRUE(store->commit());
  ASSERT_EQ(listener.notifications().size(), 1U);
  EXPECT_TRUE(reader->wait(before_, kHangGuard).value());
}

}  // namespace
}  // namespace pawl::test
