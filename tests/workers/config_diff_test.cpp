// SPDX-License-Identifier: Apache-2.0
#include "workers/config/diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace pawl::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ChildSpec pump(std::string name, std::string config = {}) {
  return {.name = std::move(name), .worker_type = "pump", .user_spec = {.config = std::move(config)}};
}

TEST(TreeDiff, EqualTreesDifferInNothing) {
  const TreeSpec tree{.children = {pump("a", "x"), pump("b")}, .variables = {.global = {{"s", {"1"}}}}};
  EXPECT_TRUE(diff(tree, tree).empty());
  EXPECT_EQ(to_text(diff(tree, tree)), "");
}

TEST(TreeDiff, TheOrderOfChildrenDoesNotMatter) {
  EXPECT_TRUE(diff({.children = {pump("a"), pump("b")}}, {.children = {pump("b"), pump("a")}}).empty());
}

TEST(TreeDiff, ChildrenComeAndGo) {
  const auto changes = diff({.children = {pump("a"), pump("b")}}, {.children = {pump("b"), pump("c")}});
  ASSERT_EQ(changes.removed.size(), 1U);
  EXPECT_EQ(changes.removed[0].name, "a");
  ASSERT_EQ(changes.added.size(), 1U);
  EXPECT_EQ(changes.added[0].name, "c");
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(to_text(changes), "- a (pump)\n+ c (pump)\n");
}

TEST(TreeDiff, EachPartOfAChildIsCompared) {
  auto before = pump("p", "rpm: 100\nmode: eco");
  before.state_mapping = {{"Running", "run"}, {"Stopped", "park"}};
  before.user_spec.variables = {.user = {{"IP", {"\"a\""}}, {"OLD", {"1"}}}, .global = {{"same", {"1"}}}};
  auto after = before;
  after.worker_type = "fan";
  after.enabled = false;
  after.user_spec.config = "rpm: 200\nmode: eco";
  after.state_mapping = {{"Running", "Degraded"}};
  after.user_spec.variables = {.user = {{"IP", {"\"b\""}}}, .global = {{"new", {"2"}}, {"same", {"1"}}}};
  const auto changes = diff({.children = {before}}, {.children = {after}});
  ASSERT_EQ(changes.changed.size(), 1U);
  const auto& change = changes.changed[0];
  EXPECT_EQ(change.type, (ValueChange{"workerType", "pump", "fan"}));
  EXPECT_EQ(change.enabled, (ValueChange{"enabled", "true", "false"}));
  using Kind = LineChange::Kind;
  EXPECT_THAT(change.config,
              ElementsAre(LineChange{Kind::removed, "rpm: 100"}, LineChange{Kind::added, "rpm: 200"},
                          LineChange{Kind::same, "mode: eco"}));
  EXPECT_EQ(to_text(changes), R"(~ p (fan)
    ~ workerType: pump -> fan
    ~ enabled: true -> false
    config:
      - rpm: 100
      + rpm: 200
        mode: eco
    variables:
      ~ IP: "a" -> "b"
      - OLD: 1
      + global.new: 2
    stateMapping:
      ~ Running: run -> Degraded
      - Stopped: park
)");
}

TEST(TreeDiff, VariablesOfTheTreeAreCompared) {
  const TreeSpec before{.variables = {.user = {{"u", {"1"}}}, .global = {{"site", {"\"north\""}}}}};
  const TreeSpec after{.variables = {.global = {{"site", {"\"south\""}}}}};
  EXPECT_EQ(to_text(diff(before, after)), "- u: 1\n~ global.site: \"north\" -> \"south\"\n");
}

TEST(TreeDiff, UnchangedLinesFarFromChangesAreLeftOut) {
  std::string same;
  for (int i = 0; i < 20; ++i) same += "same " + std::to_string(i) + "\n";
  const auto text =
      to_text(diff({.children = {pump("p", same + "a\n")}}, {.children = {pump("p", same + "b\n")}}));
  EXPECT_THAT(
      text, HasSubstr("    config:\n      ...\n        same 17\n        same 18\n        same 19\n      - a\n"
                      "      + b\n"));
  EXPECT_THAT(text, Not(HasSubstr("same 16")));
}

TEST(TreeDiff, TerminalsGetNoControlCharacters) {
  const auto text = to_text(diff({}, {.children = {{.name = "a\x1b[2J\x7f\xc2\x9b"}}}));
  EXPECT_EQ(text, "+ a\\x1b[2J\\x7f\\x9b ()\n");
}

TEST(TreeDiff, ALastLineThatIsEndedDiffersFromOneThatIsNot) {
  EXPECT_EQ(to_text(diff({.children = {pump("p", "a")}}, {.children = {pump("p", "a\n")}})),
            "~ p (pump)\n    config:\n        a\n      +\n");
}

TEST(TreeDiff, HugeTextsAreReplacedWithoutAHugeTable) {
  std::string before;
  std::string after;
  for (int i = 0; i < 20'000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(diff_lines(before, after).size(), 40'001U);
}

std::string joined_lines(const std::vector<LineChange>& changes, LineChange::Kind without) {
  std::string text;
  bool first = true;
  for (const auto& change : changes) {
    if (change.kind == without) continue;
    if (!first) text += '\n';
    first = false;
    text += change.text;
  }
  return text;
}

RC_GTEST_PROP(TreeDiff, BothTextsAreInTheLines, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n'));
  const auto before = *letters;
  const auto after = *letters;
  const auto changes = diff_lines(before, after);
  RC_ASSERT(joined_lines(changes, LineChange::Kind::added) == before);
  RC_ASSERT(joined_lines(changes, LineChange::Kind::removed) == after);
}

TEST(TreeDiff, FewLinesDiffer) {
  const auto changes = diff_lines("a\nb\nc\nd\ne", "a\nx\nc\ny\ne");
  EXPECT_EQ(std::ranges::count(changes, LineChange::Kind::same, &LineChange::kind), 3);
}

}  // namespace
}  // namespace pawl::workers
