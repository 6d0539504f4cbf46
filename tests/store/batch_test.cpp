// SPDX-License-Identifier: Apache-2.0
// Conformance: applying, committing, discarding, and who sees what when.
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

}  // namespace
}  // namespace pawl::test
