// SPDX-License-Identifier: Apache-2.0
// Conformance: heads, histories, the feed, ephemeral values.
#include <algorithm>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

std::vector<Seq> seqs(const std::vector<Entry>& entries) {
  std::vector<Seq> result;
  for (const auto& entry : entries) result.push_back(entry.seq);
  return result;
}

/// Five entries of "a" at 1, 3, 5, 7, 9 with entries of "b" between them.
std::vector<Draft> interleave(Store& store) {
  auto a = created("a");
  auto b = created("b");
  std::vector<Draft> drafts;
  for (int i = 0; i < 5; ++i) {
    const Seq seq = write(store, a);
    drafts.push_back(a);
    a = after(a, seq, i % 2 == 0 ? "open" : "closed");
    b = i == 0 ? b : after(b, seq - 1, "open");
    write(store, b);
  }
  return drafts;
}

TEST_P(Conformance, AHistoryHasTheNewestEntryFirst) {
  auto store = open();
  const auto drafts = interleave(*store);
  const auto id = drafts.front().id;
  const auto history = store->history(id, 9, 0, 100).value();
  ASSERT_EQ(seqs(history), (std::vector<Seq>{9, 7, 5, 3, 1}));
  EXPECT_EQ(history.front(), drafts.back().stored(9));
  EXPECT_EQ(history.back(), drafts.front().stored(1));
}

TEST_P(Conformance, AHistoryIsReadInPages) {
  auto store = open();
  const auto id = interleave(*store).front().id;
  EXPECT_EQ(seqs(store->history(id, 9, 0, 2).value()), (std::vector<Seq>{9, 7}));
  EXPECT_EQ(seqs(store->history(id, 9, 7, 2).value()), (std::vector<Seq>{5, 3}));
  EXPECT_EQ(seqs(store->history(id, 9, 3, 2).value()), (std::vector<Seq>{1}));
  EXPECT_EQ(seqs(store->history(id, 9, 1, 2).value()), (std::vector<Seq>{}));
  EXPECT_EQ(seqs(store->history(id, 9, 0, 0).value()), (std::vector<Seq>{}));
}

TEST_P(Conformance, APageOfAnotherInstancesHistoryIsRefused) {
  auto store = open();
  const auto id = interleave(*store).front().id;
  EXPECT_EQ(code(store->history(id, 9, 2, 10)), Code::invalid_argument);
  // Behind the newest entry nothing is missing: there was never one.
  EXPECT_EQ(code(store->history(id, 9, 1000, 10)), Code::invalid_argument);
}

TEST_P(Conformance, AnEntryOfAnotherInstanceIsNotAHead) {
  auto store = open();
  const auto id = interleave(*store).front().id;
  EXPECT_EQ(store->head_entry(id, 2).value(), std::nullopt);
  EXPECT_EQ(store->head_entry(id, 99).value(), std::nullopt);
}

TEST_P(Conformance, TheFeedIsTheLogInOrder) {
  auto store = open();
  interleave(*store);
  EXPECT_EQ(seqs(store->feed(0, 100).value()), (std::vector<Seq>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(seqs(store->feed(0, 3).value()), (std::vector<Seq>{1, 2, 3}));
  EXPECT_EQ(seqs(store->feed(3, 3).value()), (std::vector<Seq>{4, 5, 6}));
  EXPECT_EQ(seqs(store->feed(10, 3).value()), (std::vector<Seq>{}));
  EXPECT_EQ(seqs(store->feed(99, 3).value()), (std::vector<Seq>{}));
}

TEST_P(Conformance, TheFeedSkipsNumbersOfADiscardedBatch) {
  auto store = open();
  write(*store, created("a"));
  ASSERT_TRUE(join(*store, created("b")));
  store->discard();
  write(*store, created("c"));
  EXPECT_EQ(seqs(store->feed(0, 10).value()), (std::vector<Seq>{1, 3}));
  EXPECT_EQ(seqs(store->feed(1, 10).value()), (std::vector<Seq>{3}));
}

TEST_P(Conformance, LoadingGivesTheNewestEntryOfEachInstance) {
  auto store = open();
  const auto drafts = interleave(*store);
  const auto heads = load_all(*store);
  ASSERT_EQ(heads.size(), 2U);
  const auto& newest = drafts.back();
  EXPECT_EQ(heads.at(newest.id), (LoadedHead{.id = newest.id,
                                             .machine = "door",
                                             .key = "a",
                                             .partition = "",
                                             .version = 5,
                                             .generation = 1,
                                             .seq = 9,
                                             .state = newest.state,
                                             .created_at = drafts.front().at,
                                             .at = newest.at,
                                             .extra = "",
                                             .finished = false}));
}

/// Everything that a head shows, through one life with two generations.
void live(Store& store) {
  auto draft = created("k");
  draft.partition = "p1";
  auto seq = write(store, draft);
  draft = after(draft, seq, "open");
  draft.extra = R"({"timers":[1]})";
  seq = write(store, draft);
  draft = after(draft, seq, "locked");
  draft.extra.clear();
  draft.finished = true;
  seq = write(store, draft);
  draft = after(draft, seq, "closed");
  draft.kind = EntryKind::created;
  draft.key = "k";
  draft.partition = "p2";
  draft.generation = 2;
  draft.finished = false;
  draft.extra = R"({"work":["x"]})";
  write(store, draft);
}

const LoadedHead kLived{.id = instance_id("door", "k"),
                        .machine = "door",
                        .key = "k",
                        .partition = "p2",
                        .version = 4,
                        .generation = 2,
                        .seq = 4,
                        .state = "closed",
                        .created_at = at_second(3),
                        .at = at_second(3),
                        .extra = R"({"work":["x"]})",
                        .finished = false};

TEST_P(Conformance, HeadsAreTheSameWhereverTheLastFlushWas) {
  for (std::int64_t flush_every = 1; flush_every <= 6; ++flush_every) {
    place_ = GetParam()();
    auto store = open({.flush_every = flush_every});
    live(*store);
    EXPECT_EQ(load_all(*store).at(kLived.id), kLived) << "flush_every " << flush_every;
    store = crash(std::move(store), {.flush_every = flush_every});
    EXPECT_EQ(load_all(*store).at(kLived.id), kLived) << "after a crash, flush_every " << flush_every;
    store = reopen(std::move(store));
    EXPECT_EQ(load_all(*store).at(kLived.id), kLived) << "after closing, flush_every " << flush_every;
  }
}

TEST_P(Conformance, ManyInstancesSurviveFlushingInSlices) {
  auto store = open({.flush_every = 700});
  std::vector<Draft> drafts;
  for (int i = 0; i < 2000; ++i) drafts.push_back(created("k" + std::to_string(i)));
  ASSERT_TRUE(join(*store, drafts));
  ASSERT_TRUE(store->commit());
  // Small batches, so that a round takes several of them, with changes of its instances meanwhile.
  for (int round = 0; round < 8; ++round) {
    const auto heads = load_all(*store);
    for (std::size_t i = 0; i < drafts.size(); i += 37) {
      drafts[i] = after(drafts[i], heads.at(drafts[i].id).seq, "open");
      ASSERT_TRUE(join(*store, drafts[i]));
    }
    ASSERT_TRUE(store->commit());
  }
  const auto before = load_all(*store);
  store = crash(std::move(store));
  EXPECT_EQ(load_all(*store), before);
  EXPECT_EQ(before.at(drafts[37].id).version, 9);
  EXPECT_EQ(problems(*store), "");
}

TEST_P(Conformance, AnEphemeralValueIsKeptBesideItsInstance) {
  auto store = open();
  const auto id = instance_id("door", "a");
  const Ephemeral beat{id, "beat", "1", at_second(1)};
  const Ephemeral mood{id, "mood", R"("fine")", at_second(2)};
  ASSERT_TRUE(store->put(std::vector{beat, mood}));
  EXPECT_TRUE(store->ephemerals(id).value().empty()) << "it is written together with a commit";
  ASSERT_TRUE(store->commit());
  const auto values = store->ephemerals(id).value();
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].name, "beat");
  EXPECT_EQ(values[0].at, at_second(1));
  EXPECT_EQ(values[1].value, R"("fine")");
  EXPECT_TRUE(store->ephemerals(instance_id("door", "b")).value().empty());
}

TEST_P(Conformance, TheNewestEphemeralValueWinsAndAnEmptyOneRemovesIt) {
  auto store = open();
  const auto id = instance_id("door", "a");
  for (const char* value : {"1", "2"}) {
    ASSERT_TRUE(store->put(std::vector{Ephemeral{id, "beat", value, at_second(1)}}));
    ASSERT_TRUE(store->commit());
  }
  EXPECT_EQ(store->ephemerals(id).value().at(0).value, "2");
  store = reopen(std::move(store));
  EXPECT_EQ(store->ephemerals(id).value().at(0).value, "2");
  ASSERT_TRUE(store->put(std::vector{Ephemeral{id, "beat", "", at_second(2)}}));
  ASSERT_TRUE(store->commit());
  EXPECT_TRUE(store->ephemerals(id).value().empty());
}

TEST_P(Conformance, ADiscardedEphemeralValueIsGone) {
  auto store = open();
  const auto id = instance_id("door", "a");
  ASSERT_TRUE(store->put(std::vector{Ephemeral{id, "beat", "1", at_second(1)}}));
  store->discard();
  ASSERT_TRUE(store->commit());
  EXPECT_TRUE(store->ephemerals(id).value().empty());
}

TEST_P(Conformance, TheLastEntryBeforeATimeIsFound) {
  auto store = open();
  // Times 0, 10, 10, 20, …, and a gap in the numbers.
  for (int i = 0; i < 40; ++i) {
    auto draft = created("k" + std::to_string(i));
    draft.at = at_second((i + 1) / 2 * 10);
    if (i == 20) {
      ASSERT_TRUE(join(*store, std::vector{draft, draft, draft}));
      store->discard();
    }
    write(*store, draft);
  }
  const auto entries = store->feed(0, 100).value();
  for (int second = -1; second <= 210; ++second) {
    Seq expected = 0;
    for (const auto& entry : entries) {
      if (entry.at < at_second(second)) expected = entry.seq;
    }
    EXPECT_EQ(store->seq_before(at_second(second)).value(), expected) << second;
  }
}

}  // namespace
}  // namespace pawl::test
