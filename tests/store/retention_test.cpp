// SPDX-License-Identifier: Apache-2.0
// Conformance: the horizon, what lies below it, and forgetting.
#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

void retain(Store& store, Seq horizon, Seq forget) {
  for (int calls = 0; calls < 1000; ++calls) {
    const auto done = store.retain(horizon, forget);
    ASSERT_TRUE(done) << done.error().to_string();
    if (*done) return;
  }
  FAIL() << "retention never ends";
}

/// "a" has entries 1, 3 and 5, "b" entries 2 and 4.
std::vector<Draft> two_lives(Store& store) {
  auto a = created("a");
  auto b = created("b");
  b.extra = R"({"timers":[1]})";
  b.partition = "house";
  std::vector<Draft> drafts{a, b};
  write(store, a);
  write(store, b);
  for (Seq seq = 1; seq <= 3; ++seq) {
    drafts.push_back(after(drafts[static_cast<std::size_t>(seq) - 1], seq, "open"));
    write(store, drafts.back());
  }
  return drafts;
}

TEST_P(Conformance, AHeadBelowTheHorizonCarriesItsEntry) {
  auto store = open();
  const auto drafts = two_lives(*store);
  const auto before = load_all(*store);
  retain(*store, 4, 0);
  EXPECT_EQ(store->info().horizon, 4);
  EXPECT_EQ(store->head_entry(drafts[3].id, 4).value(), drafts[3].stored(4));
  EXPECT_EQ(store->head_entry(drafts[4].id, 5).value(), drafts[4].stored(5));
  EXPECT_EQ(load_all(*store), before);
  EXPECT_EQ(problems(*store), "");
  store = crash(std::move(store));
  EXPECT_EQ(store->info().horizon, 4);
  EXPECT_EQ(store->head_entry(drafts[3].id, 4).value(), drafts[3].stored(4));
  EXPECT_EQ(load_all(*store), before);
}

TEST_P(Conformance, AFirstEntryBelowTheHorizonKeepsItsKey) {
  auto store = open();
  auto draft = created("k");
  draft.partition = "house";
  write(*store, draft);
  retain(*store, 1, 0);
  EXPECT_EQ(store->head_entry(draft.id, 1).value(), draft.stored(1));
}

TEST_P(Conformance, AHistoryEndsAtTheHorizon) {
  auto store = open();
  const auto drafts = two_lives(*store);
  retain(*store, 3, 0);
  const auto a = store->history(drafts[0].id, 5, 0, 10).value();
  ASSERT_EQ(a.size(), 1U);
  EXPECT_EQ(a[0], drafts[4].stored(5));
  EXPECT_TRUE(store->history(drafts[0].id, 5, 5, 10).value().empty());
  EXPECT_TRUE(store->history(drafts[0].id, 5, 3, 10).value().empty());
  retain(*store, 5, 0);
  const auto b = store->history(drafts[1].id, 4, 0, 10).value();
  ASSERT_EQ(b.size(), 1U);
  EXPECT_EQ(b[0], drafts[3].stored(4));
}

TEST_P(Conformance, AHeadBelowTheHorizonGoesOn) {
  auto store = open({.flush_every = 1});
  const auto drafts = two_lives(*store);
  retain(*store, 5, 0);
  const auto further = after(drafts[4], 5, "closed");
  EXPECT_EQ(write(*store, further), 6);
  // Two more batches, so that the head is written behind.
  for (const char* key : {"c", "d"}) {
    auto other = created(key);
    other.at = further.at;
    write(*store, other);
  }
  EXPECT_EQ(store->head_entry(further.id, 6).value(), further.stored(6));
  EXPECT_EQ(store->head_entry(further.id, 5).value(), std::nullopt);
  EXPECT_EQ(store->history(further.id, 6, 0, 10).value(), std::vector{further.stored(6)});
  EXPECT_EQ(load_all(*store).at(further.id).state, "closed");
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, ACursorBelowTheHorizonHasExpired) {
  auto store = open();
  two_lives(*store);
  retain(*store, 3, 0);
  const auto expired = store->feed(2, 10);
  ASSERT_EQ(code(expired), Code::cursor_expired);
  EXPECT_EQ(expired.error().field("horizon"), "3");
  EXPECT_EQ(store->feed(3, 10).value().size(), 2U);
}

TEST_P(Conformance, NumbersAreNotUsedAgainAfterTheWholeLogIsCut) {
  auto store = open();
  const auto drafts = two_lives(*store);
  retain(*store, 1000, 0);
  EXPECT_EQ(store->info().horizon, 5) << "at most the newest entry";
  EXPECT_EQ(store->info().last, 5);
  for (int i = 0; i < 2; ++i) {
    store = i == 0 ? crash(std::move(store)) : reopen(std::move(store));
    EXPECT_EQ(store->info().last, 5);
    EXPECT_EQ(store->info().last_at, drafts.back().at);
    EXPECT_TRUE(store->feed(5, 10).value().empty());
  }
  EXPECT_EQ(write(*store, created("c")), 6);
}

TEST_P(Conformance, TheHorizonNeverGoesBack) {
  auto store = open();
  two_lives(*store);
  retain(*store, 4, 0);
  retain(*store, 2, 0);
  EXPECT_EQ(store->info().horizon, 4);
}

TEST_P(Conformance, AFinishedInstanceIsForgottenUpToTheMarkOnly) {
  auto store = open();
  auto drafts = fill(*store, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    drafts[i] = after(drafts[i], static_cast<Seq>(i) + 1, "locked");
    drafts[i].finished = true;
    write(*store, drafts[i]);
    ASSERT_TRUE(store->put(std::vector{Ephemeral{drafts[i].id, "beat", "1", at_second(1)}}));
    ASSERT_TRUE(store->commit());
  }
  retain(*store, 0, 4);
  auto heads = load_all(*store);
  EXPECT_EQ(heads.size(), 2U);
  EXPECT_FALSE(heads.contains(drafts[0].id));
  EXPECT_TRUE(store->ephemerals(drafts[0].id).value().empty());
  EXPECT_FALSE(store->ephemerals(drafts[1].id).value().empty());
  retain(*store, 5, 5);
  store = crash(std::move(store));
  heads = load_all(*store);
  EXPECT_EQ(heads.size(), 1U) << "one that is not finished is never forgotten";
  EXPECT_TRUE(heads.contains(drafts[2].id));
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, AForgottenInstanceBeginsAnew) {
  auto store = open();
  auto draft = created("k");
  write(*store, draft);
  draft = after(draft, 1, "locked");
  draft.finished = true;
  write(*store, draft);
  retain(*store, 0, 2);
  auto again = created("k");
  again.at = at_second(9);
  const auto seq = write(*store, again);
  store = reopen(std::move(store));
  EXPECT_EQ(store->history(again.id, seq, 0, 10).value(), std::vector{again.stored(seq)});
  EXPECT_EQ(load_all(*store).at(again.id).created_at, at_second(9));
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, RetentionGoesStepByStepAndBatchesRunBetween) {
  auto store = open();
  std::vector<Draft> drafts;
  for (int i = 0; i < 12'000; ++i) drafts.push_back(created("k" + std::to_string(i)));
  ASSERT_TRUE(join(*store, drafts));
  ASSERT_TRUE(store->commit());
  ASSERT_FALSE(store->retain(12'000, 0).value()) << "this is too much for one call";
  const auto reached = store->info().horizon;
  EXPECT_GT(reached, 0);
  EXPECT_LT(reached, 12'000);
  EXPECT_EQ(store->head_entry(drafts[0].id, 1).value(), drafts[0].stored(1));
  EXPECT_EQ(store->head_entry(drafts[11'999].id, 12'000).value(), drafts[11'999].stored(12'000));
  write(*store, created("between"));
  retain(*store, 12'000, 0);
  EXPECT_EQ(store->info().horizon, 12'000);
  EXPECT_EQ(store->feed(12'000, 10).value().size(), 1U);
  EXPECT_EQ(load_all(*store).size(), 12'001U);
}

TEST_P(Conformance, RetentionWaitsForTheOpenBatch) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_TRUE(join(*store, created("b")));
  EXPECT_EQ(code(store->retain(1, 0)), Code::invalid_argument);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
}

TEST_P(Conformance, ARequestBelowTheHorizonIsForgotten) {
  auto store = open();
  ASSERT_TRUE(join(*store, created("a"), request(1)));
  ASSERT_TRUE(store->commit());
  retain(*store, 1, 0);
  EXPECT_FALSE(store->find_request(request(1).id).value());
  EXPECT_TRUE(join(*store, created("b"), request(1)));
}

TEST_P(Conformance, TheLastEntryBeforeATimeLiesAboveTheHorizon) {
  auto store = open();
  fill(*store, 3);
  retain(*store, 2, 0);
  EXPECT_EQ(store->seq_before(at_second(1)).value(), 3);
  retain(*store, 3, 0);
  EXPECT_EQ(store->seq_before(at_second(1)).value(), 0);
}

}  // namespace
}  // namespace pawl::test
