// SPDX-License-Identifier: Apache-2.0
// Conformance: the horizon, what lies below it, and forgetting.
#include <gmock/gmock.h>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

void retain(Store& store, Seq horizon) {
  for (int calls = 0; calls < 1000; ++calls) {
    const auto done = store.retain(horizon);
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
  retain(*store, 4);
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
  retain(*store, 1);
  EXPECT_EQ(store->head_entry(draft.id, 1).value(), draft.stored(1));
}

TEST_P(Conformance, AHistoryEndsAtTheHorizon) {
  auto store = open();
  const auto drafts = two_lives(*store);
  retain(*store, 3);
  const auto a = store->history(drafts[0].id, 5, 0, 10).value();
  ASSERT_EQ(a.size(), 1U);
  EXPECT_EQ(a[0], drafts[4].stored(5));
  EXPECT_TRUE(store->history(drafts[0].id, 5, 5, 10).value().empty());
  EXPECT_TRUE(store->history(drafts[0].id, 5, 3, 10).value().empty());
  retain(*store, 5);
  const auto b = store->history(drafts[1].id, 4, 0, 10).value();
  ASSERT_EQ(b.size(), 1U);
  EXPECT_EQ(b[0], drafts[3].stored(4));
}

TEST_P(Conformance, AHeadBelowTheHorizonGoesOn) {
  auto store = open({.flush_every = 1});
  const auto drafts = two_lives(*store);
  retain(*store, 5);
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
  retain(*store, 3);
  const auto expired = store->feed(2, 10);
  ASSERT_EQ(code(expired), Code::cursor_expired);
  EXPECT_EQ(expired.error().field("horizon"), "3");
  EXPECT_EQ(store->feed(3, 10).value().size(), 2U);
}

TEST_P(Conformance, NumbersAreNotUsedAgainAfterTheWholeLogIsCut) {
  auto store = open();
  const auto drafts = two_lives(*store);
  retain(*store, 1000);
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
  retain(*store, 4);
  retain(*store, 2);
  EXPECT_EQ(store->info().horizon, 4);
}

void forget(Store& store, const std::vector<InstanceId>& ids) {
  const auto done = store.forget(ids);
  ASSERT_TRUE(done) << done.error().to_string();
}

/// An instance that is finished in two entries, of which the second is `seq`.
Draft finished(Store& store, const std::string& key, const std::string& extra = {}) {
  const auto first = created(key);
  auto last = after(first, write(store, first), "locked");
  last.finished = true;
  last.extra = extra;
  write(store, last);
  return last;
}

TEST_P(Conformance, ForgettingRemovesExactlyTheHeadsItIsTold) {
  auto store = open();
  auto drafts = fill(*store, 3);
  for (const auto& draft : drafts) {
    ASSERT_TRUE(store->put(std::vector{Ephemeral{draft.id, "beat", "1", at_second(1)}}));
    ASSERT_TRUE(store->commit());
  }
  drafts[0] = after(drafts[0], 1, "locked");
  drafts[0].finished = true;
  write(*store, drafts[0]);
  forget(*store, {drafts[1].id, instance_id("door", "never there")});
  for (const bool crashed : {false, true}) {
    if (crashed) store = crash(std::move(store));
    const auto heads = load_all(*store);
    EXPECT_EQ(heads.size(), 2U) << "one that is finished is kept unless it is named";
    EXPECT_FALSE(heads.contains(drafts[1].id));
    EXPECT_TRUE(store->ephemerals(drafts[1].id).value().empty());
    EXPECT_FALSE(store->ephemerals(drafts[0].id).value().empty());
  }
}

TEST_P(Conformance, RetentionForgetsNoInstanceByItself) {
  auto store = open();
  const auto done = finished(*store, "k");
  const auto holding = finished(*store, "m", R"({"outbox":[1]})");
  retain(*store, 4);
  for (const bool crashed : {false, true}) {
    if (crashed) store = crash(std::move(store));
    const auto heads = load_all(*store);
    EXPECT_TRUE(heads.contains(done.id));
    ASSERT_TRUE(heads.contains(holding.id));
    EXPECT_EQ(heads.at(holding.id).extra, holding.extra);
  }
}

TEST_P(Conformance, AForgottenInstanceBeginsAnew) {
  auto store = open();
  const auto done = finished(*store, "k");
  forget(*store, {done.id});
  auto again = created("k");
  again.at = at_second(9);
  const auto seq = write(*store, again);
  store = reopen(std::move(store));
  EXPECT_EQ(store->history(again.id, seq, 0, 10).value(), std::vector{again.stored(seq)});
  EXPECT_EQ(load_all(*store).at(again.id).created_at, at_second(9));
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, AForgottenInstanceStaysForgottenWhileItsEntriesAreInTheLog) {
  auto store = open();
  const auto done = finished(*store, "k");
  forget(*store, {done.id});
  auto other = created("other");
  other.at = done.at;
  write(*store, other);
  for (const bool crashed : {true, false}) {
    store = crashed ? crash(std::move(store)) : reopen(std::move(store));
    EXPECT_FALSE(load_all(*store).contains(done.id));
    EXPECT_EQ(problems(*store), "");
  }
}

TEST_P(Conformance, ForgettingWaitsForTheOpenBatch) {
  auto store = open();
  const auto done = finished(*store, "k");
  ASSERT_TRUE(join(*store, created("b")));
  EXPECT_EQ(code(store->forget(std::vector{done.id})), Code::invalid_argument);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*store).size(), 2U);
}

TEST_P(Conformance, AnEntryOfAForgottenInstanceIsFoundAndRepaired) {
  auto store = open();
  auto last = finished(*store, "k", R"({"outbox":[1]})");
  forget(*store, {last.id});
  last = after(last, 2, "locked");
  last.kind = EntryKind::message;
  last.extra.clear();
  write(*store, last);
  EXPECT_THAT(problems(*store), testing::HasSubstr("entry 3 continues instance " + last.id.to_string()));
  store = crash(std::move(store));
  EXPECT_EQ(code(store->load([](const StoredHead&) {})), Code::store_corrupt);
  const auto repaired = store->repair();
  ASSERT_TRUE(repaired) << repaired.error().to_string();
  EXPECT_THAT(repaired->repaired, testing::ElementsAre(testing::HasSubstr("rebuilt from entry 3")));
  EXPECT_THAT(repaired->left.problems, testing::IsEmpty());
  for (const bool crashed : {true, false}) {
    store = crashed ? crash(std::move(store)) : reopen(std::move(store));
    const auto head = load_all(*store).at(last.id);
    EXPECT_EQ(head.key, "k");
    EXPECT_EQ(head.seq, 3);
    EXPECT_EQ(head.version, last.version);
    EXPECT_EQ(head.created_at, created("k").at);
    EXPECT_EQ(problems(*store), "");
  }
  EXPECT_THAT(store->repair().value().repaired, testing::IsEmpty()) << "nothing is left to do";
}

TEST_P(Conformance, AForgottenMessageIsFoundAndRepaired) {
  auto store = open();
  const auto last = finished(*store, "k", R"({"outbox":[1]})");
  forget(*store, {last.id});
  EXPECT_THAT(problems(*store), testing::HasSubstr("holds messages, work or timers"));
  ASSERT_TRUE(store->repair());
  store = reopen(std::move(store));
  EXPECT_EQ(load_all(*store).at(last.id).extra, last.extra);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, ARepairedInstanceWhoseKeyWasCutAwayIsKeptUnderItsId) {
  auto store = open();
  auto last = finished(*store, "k");
  retain(*store, 2);
  forget(*store, {last.id});
  last = after(last, 2, "locked");
  last.finished = true;
  write(*store, last);
  store = crash(std::move(store));
  ASSERT_TRUE(store->repair());
  store = reopen(std::move(store));
  EXPECT_EQ(load_all(*store).at(last.id).key, last.id.to_string());
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, RetentionGoesStepByStepAndBatchesRunBetween) {
  auto store = open();
  std::vector<Draft> drafts;
  for (int i = 0; i < 12'000; ++i) drafts.push_back(created("k" + std::to_string(i)));
  ASSERT_TRUE(join(*store, drafts));
  ASSERT_TRUE(store->commit());
  ASSERT_FALSE(store->retain(12'000).value()) << "this is too much for one call";
  const auto reached = store->info().horizon;
  EXPECT_GT(reached, 0);
  EXPECT_LT(reached, 12'000);
  EXPECT_EQ(store->head_entry(drafts[0].id, 1).value(), drafts[0].stored(1));
  EXPECT_EQ(store->head_entry(drafts[11'999].id, 12'000).value(), drafts[11'999].stored(12'000));
  write(*store, created("between"));
  retain(*store, 12'000);
  EXPECT_EQ(store->info().horizon, 12'000);
  EXPECT_EQ(store->feed(12'000, 10).value().size(), 1U);
  EXPECT_EQ(load_all(*store).size(), 12'001U);
}

TEST_P(Conformance, RetentionWaitsForTheOpenBatch) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_TRUE(join(*store, created("b")));
  EXPECT_EQ(code(store->retain(1)), Code::invalid_argument);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
}

TEST_P(Conformance, ARequestBelowTheHorizonIsForgotten) {
  auto store = open();
  ASSERT_TRUE(join(*store, created("a"), request(1)));
  ASSERT_TRUE(store->commit());
  retain(*store, 1);
  EXPECT_FALSE(store->find_request(request(1).id).value());
  EXPECT_TRUE(join(*store, created("b"), request(1)));
}

TEST_P(Conformance, TheLastEntryBeforeATimeLiesAboveTheHorizon) {
  auto store = open();
  fill(*store, 3);
  retain(*store, 2);
  EXPECT_EQ(store->seq_before(at_second(1)).value(), 3);
  retain(*store, 3);
  EXPECT_EQ(store->seq_before(at_second(1)).value(), 0);
}

}  // namespace
}  // namespace pawl::test
