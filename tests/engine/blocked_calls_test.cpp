// SPDX-License-Identifier: Apache-2.0
// What wakes which blocked calls.
#include "kernel/engine/blocked_calls.hpp"

#include <gtest/gtest.h>

namespace pawl::test {
namespace {

constexpr std::uint16_t kOpen = 1;
constexpr std::uint16_t kClosed = 2;

class BlockedCallsTest : public testing::Test {
 protected:
  BlockedCalls calls;
  InstanceId id{{1}};
  InstanceId other{{2}};
};

TEST_F(BlockedCallsTest, AStateWakesTheCallsOfItsInstanceThatWaitForIt) {
  BlockedCalls::ForState wanted(calls, id, {kOpen});
  BlockedCalls::ForState unwanted(calls, id, {kClosed});
  BlockedCalls::ForState elsewhere(calls, other, {kOpen});
  calls.wake_for_entries_up_to(1).wake_for_state(id, kOpen, false);
  EXPECT_TRUE(wanted.gate().is_open());
  EXPECT_FALSE(unwanted.gate().is_open());
  EXPECT_FALSE(elsewhere.gate().is_open());
}

TEST_F(BlockedCallsTest, AFinishedInstanceWakesAllOfItsCalls) {
  BlockedCalls::ForState call(calls, id, {kOpen});
  calls.wake_for_entries_up_to(1).wake_for_state(id, kClosed, true);
  EXPECT_TRUE(call.gate().is_open());
}

TEST_F(BlockedCallsTest, AnEntryWakesTheCallsThatHaveNotSeenIt) {
  BlockedCalls::ForEntry behind(calls, 6);
  BlockedCalls::ForEntry seen(calls, 7);
  EXPECT_FALSE(calls.wake_for_entries_up_to(7).any_for_states());
  EXPECT_TRUE(behind.gate().is_open());
  EXPECT_FALSE(seen.gate().is_open());
}

TEST_F(BlockedCallsTest, TheEndWakesAllAndStaysWithItsFirstReason) {
  BlockedCalls::ForState before(calls, id, {kOpen});
  BlockedCalls::ForEntry entry(calls, 7);
  EXPECT_FALSE(before.ended());
  calls.end(Error(Code::store_poisoned, "first"));
  calls.end(Error(Code::stopped, "second"));
  EXPECT_TRUE(before.gate().is_open());
  EXPECT_TRUE(entry.gate().is_open());
  const BlockedCalls::ForState after(calls, id, {kOpen});
  EXPECT_EQ(after.ended().value().code(), Code::store_poisoned);
}

TEST_F(BlockedCallsTest, ACallIsRegisteredAsLongAsItLives) {
  EXPECT_TRUE(calls.empty());
  {
    const BlockedCalls::ForState call(calls, id, {kOpen});
    EXPECT_FALSE(calls.empty());
  }
  EXPECT_TRUE(calls.empty());
}

}  // namespace
}  // namespace pawl::test
