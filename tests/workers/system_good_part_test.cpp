// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers/good_part.hpp"
#include "workers/types/all.hpp"

namespace pawl::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GoodPartOfAFile : public ::testing::Test {
 protected:
  GoodPartOfAFile() { add_worker_types(types_, {}); }

  GoodPart take(std::string_view text) { return take_good(text, "site.yaml", types_, now_); }
  static std::vector<std::string> names(const GoodPart& part) {
    std::vector<std::string> found;
    if (part.tree) {
      for (const auto& child : part.tree->children) found.push_back(child.name + ":" + child.worker_type);
    }
    return found;
  }

  WorkerTypes types_;
  TreeSpec now_{
      .children = {{.name = "old", .worker_type = "child"}, {.name = "pump", .worker_type = "slow"}}};
};

TEST_F(GoodPartOfAFile, IsAllOfItWhereThereIsNoMistake) {
  const auto part = take("children:\n  - {name: pump, workerType: child}\n");
  EXPECT_THAT(part.problems, IsEmpty());
  EXPECT_THAT(names(part), ElementsAre("pump:child"));
}

TEST_F(GoodPartOfAFile, LeavesAChildWithAMistakeAsItIsAndTakesTheOthers) {
  const auto part = take(
      "children:\n"
      "  - {name: pump, workerType: chlid}\n"
      "  - {name: new, workerType: child}\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 2);
  EXPECT_EQ(part.problems[0].suggestion, "child");
  EXPECT_THAT(names(part), ElementsAre("new:child", "pump:slow"));
}

TEST_F(GoodPartOfAFile, DoesNotMakeANewChildWithAMistake) {
  const auto part = take("children:\n  - {name: fresh, workerType: chlid}\n");
  EXPECT_EQ(part.problems.size(), 1U);
  EXPECT_THAT(names(part), IsEmpty());
  EXPECT_TRUE(part.tree.has_value());
}

TEST_F(GoodPartOfAFile, RemovesNobodyWhereANameCannotBeRead) {
  const auto part = take("children:\n  - {nmae: pump, workerType: child}\n");
  EXPECT_FALSE(part.problems.empty());
  EXPECT_THAT(names(part), ElementsAre("old:child", "pump:slow"));
}

TEST_F(GoodPartOfAFile, IsNothingWhereTheMistakeIsOutsideOfChildren) {
  EXPECT_FALSE(take("childern: []\n").tree.has_value());
  EXPECT_FALSE(take("children: [\n").tree.has_value());
}

TEST_F(GoodPartOfAFile, KnowsTheKeysOfAConfigurationAndTheirLines) {
  const auto part = take(
      "children:\n"
      "  - name: pump\n"
      "    workerType: parent\n"
      "    userSpec:\n"
      "      config: |\n"
      "        children_count: 1\n"
      "        child_worker_typ: child\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 7);
  EXPECT_EQ(part.problems[0].key, "children[0].userSpec.config.child_worker_typ");
  EXPECT_EQ(part.problems[0].suggestion, "child_worker_type");
  EXPECT_THAT(names(part), ElementsAre("pump:slow"));
}

TEST_F(GoodPartOfAFile, RefusesAValueThatTheTypeDoesNotTake) {
  const auto part = take(
      "children:\n"
      "  - name: pump\n"
      "    workerType: slow\n"
      "    userSpec:\n"
      "      config:\n"
      "        delay_seconds: many\n");
  ASSERT_EQ(part.problems.size(), 1U);
  EXPECT_EQ(part.problems[0].line, 6);
  EXPECT_EQ(part.problems[0].key, "children[0].userSpec.config.delay_seconds");
  EXPECT_THAT(part.problems[0].problem, HasSubstr("integer"));
}

}  // namespace
}  // namespace pawl::workers
