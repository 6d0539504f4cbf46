// SPDX-License-Identifier: Apache-2.0
// Places in five levels: what a child adds to its parent's place, and the path of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/worker_spec.hpp"

namespace {

using pawl::Code;
using pawl::Location;
using pawl::location_path;
using pawl::merge;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LocationMerge, TheChildAddsLevelsBelowItsParents) {
  const auto merged = merge({{"acme", "north"}}, {{"", "", "hall-3", "line-1"}});
  ASSERT_TRUE(merged);
  EXPECT_THAT(merged->levels, ElementsAre("acme", "north", "hall-3", "line-1", ""));
}

TEST(LocationMerge, TheChildsLevelWinsWhereBothHaveOne) {
  const auto merged = merge({{"acme", "north", "hall-3"}}, {{"", "south"}});
  ASSERT_TRUE(merged);
  EXPECT_THAT(merged->levels, ElementsAre("acme", "south", "hall-3", "", ""));
}

TEST(LocationMerge, TheParentFillsTheGapsOfTheChild) {
  const auto merged = merge({{"", "north", "", "line-1"}}, {{"acme", "", "hall-3", "", "cell-9"}});
  ASSERT_TRUE(merged);
  EXPECT_THAT(merged->levels, ElementsAre("acme", "north", "hall-3", "line-1", "cell-9"));
}

TEST(LocationMerge, TheResultAlwaysHasFiveLevels) {
  const auto merged = merge({}, {});
  ASSERT_TRUE(merged);
  EXPECT_THAT(merged->levels, ElementsAre("", "", "", "", ""));
}

TEST(LocationMerge, MergingIntoAnUnknownPlaceKeepsTheChilds) {
  const auto merged = merge({}, {{"acme", "north"}});
  ASSERT_TRUE(merged);
  EXPECT_EQ(location_path(*merged), "acme.north");
}

TEST(LocationMerge, FiveLevelsAreAllowedAndSixAreNot) {
  const Location five{{"a", "b", "c", "d", "e"}};
  const Location six{{"a", "b", "c", "d", "e", "f"}};
  EXPECT_TRUE(merge(five, five));
  const auto child = merge(five, six);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), Code::spec_invalid);
  EXPECT_EQ(child.error().field("levels"), "6");
  EXPECT_THAT(child.error().message(), HasSubstr("of the child has 6 levels"));
  EXPECT_THAT(child.error().message(), HasSubstr("enterprise, site, area, line, cell"));
  const auto parent = merge(six, {});
  ASSERT_FALSE(parent);
  EXPECT_EQ(parent.error().code(), Code::spec_invalid);
  EXPECT_THAT(parent.error().message(), HasSubstr("of the parent"));
}

TEST(LocationMerge, SixLevelsAreRefusedEvenWhereTheLastIsEmpty) {
  EXPECT_FALSE(merge({}, {{"a", "b", "c", "d", "e", ""}}));
}

TEST(LocationPath, LevelsStandInTheirOrder) {
  EXPECT_EQ(location_path({{"acme", "north", "hall-3", "line-1", "cell-9"}}),
            "acme.north.hall-3.line-1.cell-9");
}

TEST(LocationPath, LevelsThatAreNotKnownLeaveNoSecondDot) {
  EXPECT_EQ(location_path({{"acme", "", "hall-3", "", "cell-9"}}), "acme.hall-3.cell-9");
  EXPECT_EQ(location_path({{"", "north", ""}}), "north");
}

TEST(LocationPath, AnUnknownPlaceHasAnEmptyPath) {
  EXPECT_EQ(location_path({}), "");
  EXPECT_EQ(location_path({{"", "", "", "", ""}}), "");
}

}  // namespace
