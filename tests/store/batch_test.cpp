// SPDX-License-Identifier: Apache-2.0
// Conformance: applying, committing, discarding, and who sees what when.
#include <thread>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

TEST_P(Conformance, ACommittedEntryIsReadBackAsItWasWritten) {
  auto store = open();
  auto draft = created("front");
  draft.partition = "house";
  draft.extra = R"({"timers":[]})";
  const auto seq = write(*store, draft);
  EXPECT_EQ(store->head_entry(draft.id, seq).value(), draft.stored(seq));
}

TEST_P(Conformance, NumbersStartAtOneAndFollowEachOther) {
  auto store = open();
  EXPECT_EQ(join(*store, created("a")).value(), 1);
  EXPECT_EQ(join(*store, std::vector{created("b"), created("c")}).value(), 2);
  EXPECT_EQ(join(*store, created("d")).value(), 4);
}

TEST_P(Conformance, ReadersDoNotSeeTheOpenBatch) {
  auto store = open();
  const auto draft = created("front");
  const auto seq = join(*store, draft).value();
  EXPECT_EQ(store->head_entry(draft.id, seq).value(), std::nullopt);
  EXPECT_TRUE(store->feed(0, 10).value().empty());
  EXPECT_TRUE(load_all(*store).empty());
  EXPECT_EQ(store->info().last, 0);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(0, 10).value().size(), 1U);
  EXPECT_EQ(store->info().last, seq);
}

TEST_P(Conformance, ADiscardedBatchLeavesNothingAndItsNumbersAreNotUsedAgain) {
  auto store = open();
  ASSERT_TRUE(join(*store, std::vector{created("a"), created("b")}));
  store->discard();
  EXPECT_TRUE(store->feed(0, 10).value().empty());
  EXPECT_EQ(write(*store, created("c")), 3);
  EXPECT_EQ(load_all(*store).size(), 1U);
}

TEST_P(Conformance, NumbersOfADiscardedBatchAreNotUsedAfterReopening) {
  auto store = open();
  ASSERT_TRUE(join(*store, std::vector{created("a"), created("b")}));
  store->discard();
  store = reopen(std::move(store));
  EXPECT_EQ(write(*store, created("c")), 3);
}

TEST_P(Conformance, CommittingNothingIsFine) {
  auto store = open();
  EXPECT_TRUE(store->commit());
  EXPECT_EQ(store->info().last, 0);
}

TEST_P(Conformance, ATransactionOfSeveralEntriesIsAppliedWhole) {
  auto store = open();
  const auto first = created("a");
  const auto second = created("b");
  ASSERT_TRUE(join(*store, std::vector{first, second}));
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(0, 10).value(), (std::vector{first.stored(1), second.stored(2)}));
}

TEST_P(Conformance, ARefusalConcernsOnlyItsOwnTransaction) {
  auto store = open({.entry_bytes = 200});
  auto large = created("large");
  large.data = std::string(200, 'x');
  ASSERT_TRUE(join(*store, created("before")));
  EXPECT_EQ(code(join(*store, large)), Code::too_large);
  EXPECT_EQ(join(*store, created("after")).value(), 2) << "a refusal takes no numbers";
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
}

TEST_P(Conformance, AnEntryAtTheLimitIsTakenAndOneByteMoreIsNot) {
  auto draft = created("k");
  draft.data.clear();
  const auto rest = draft.machine.size() + draft.key.size() + draft.state.size();
  auto store = open({.entry_bytes = 1000});
  draft.data = std::string(1000 - rest + 1, 'x');
  const auto refused = join(*store, draft);
  ASSERT_EQ(code(refused), Code::too_large);
  EXPECT_EQ(refused.error().field("bytes"), "1001");
  EXPECT_EQ(refused.error().field("limit"), "1000");
  draft.data.pop_back();
  EXPECT_TRUE(join(*store, draft));
}

TEST_P(Conformance, TextsKeepEveryByte) {
  auto store = open();
  auto draft = created(std::string("a\0b", 3));
  draft.data = "\xc3\xa4 \xf0\x9f\x9a\xaa" + std::string(1, '\0') + "end";
  draft.payload = std::string(100'000, 'p');
  const auto seq = write(*store, draft);
  EXPECT_EQ(store->head_entry(draft.id, seq).value(), draft.stored(seq));
  EXPECT_EQ(load_all(*store).at(draft.id).key, draft.key);
}

TEST_P(Conformance, EveryKindOfEntryIsKept) {
  auto store = open();
  auto draft = created("k");
  auto seq = write(*store, draft);
  for (const auto kind :
       {EntryKind::fired, EntryKind::recovery, EntryKind::work, EntryKind::timer, EntryKind::message}) {
    draft = after(draft, seq, "open");
    draft.kind = kind;
    seq = write(*store, draft);
    EXPECT_EQ(store->head_entry(draft.id, seq).value(), draft.stored(seq));
  }
}

TEST_P(Conformance, AMachineFirstSeenInADiscardedBatchIsKnownAfterwards) {
  auto store = open();
  auto first = created("k");
  first.machine = "first";
  ASSERT_TRUE(join(*store, first, request(1)));
  ASSERT_EQ(store->find_request(request(1).id).value()->entries.front().machine, "first");
  store->discard();
  auto second = created("k");
  second.machine = "second";
  ASSERT_TRUE(join(*store, second, request(1)));
  EXPECT_EQ(store->find_request(request(1).id).value()->entries.front().machine, "second");
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*store).at(second.id).machine, "second");
  first.id = instance_id("first", "other");
  write(*store, first);
  EXPECT_EQ(load_all(*store).at(first.id).machine, "first");
}

TEST_P(Conformance, ARequestIsFoundWithItsEntriesInOrder) {
  auto store = open();
  const std::vector drafts{created("a"), created("b"), created("c")};
  write(*store, created("before"));
  const auto seq = join(*store, drafts, {}, request(7, 99)).value();
  ASSERT_TRUE(store->commit());
  write(*store, created("behind"));
  const auto found = store->find_request(request(7).id).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->content, 99);
  EXPECT_EQ(found->entries,
            (std::vector{drafts[0].stored(seq), drafts[1].stored(seq + 1), drafts[2].stored(seq + 2)}));
}

TEST_P(Conformance, AnUnknownRequestIsNotFound) {
  auto store = open();
  EXPECT_EQ(store->find_request(request(1).id).value().has_value(), false);
}

TEST_P(Conformance, TheOwnerFindsARequestOfTheOpenBatchAndOtherThreadsDoNot) {
  auto store = open();
  ASSERT_TRUE(join(*store, created("a"), request(1)));
  EXPECT_TRUE(store->find_request(request(1).id).value());
  bool seen = true;
  std::jthread([&] { seen = store->find_request(request(1).id).value().has_value(); }).join();
  EXPECT_FALSE(seen);
  store->discard();
  EXPECT_FALSE(store->find_request(request(1).id).value());
}

TEST_P(Conformance, ARequestIdIsTakenOnce) {
  auto store = open();
  ASSERT_TRUE(join(*store, created("a"), request(1)));
  EXPECT_EQ(code(join(*store, std::vector{created("b"), created("c")}, {}, request(1))),
            Code::request_id_reused);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(code(join(*store, created("d"), request(1))), Code::request_id_reused);
  EXPECT_EQ(join(*store, created("e")).value(), 2);
  ASSERT_TRUE(store->commit());
  EXPECT_EQ(load_all(*store).size(), 2U);
}

TEST_P(Conformance, ARequestWithoutEntriesIsRefused) {
  auto store = open();
  EXPECT_EQ(code(store->apply({.entries = {}, .sql = {}, .request = request(1)})), Code::invalid_argument);
}

TEST_P(Conformance, ATransactionWithoutEntriesTakesNoNumber) {
  auto store = open();
  EXPECT_EQ(store->apply({.entries = {}, .sql = {}, .request = {}}).value(), 0);
  EXPECT_EQ(join(*store, created("a")).value(), 1);
}

TEST_P(Conformance, TheNewestTimeIsKnown) {
  auto store = open();
  auto draft = created("a");
  draft.at = at_second(50);
  const auto seq = write(*store, draft);
  EXPECT_EQ(store->info().last_at, at_second(50));
  store = reopen(std::move(store));
  EXPECT_EQ(store->info().last_at, at_second(50));
  EXPECT_EQ(store->info().last, seq);
}

}  // namespace
}  // namespace pawl::test
