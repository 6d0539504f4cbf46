// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "pawl/json.hpp"
#include "workers/config/tree.hpp"

namespace pawl::workers {
namespace {

/// Random trees that could be applied.
class RandomTree {
 public:
  explicit RandomTree(std::uint32_t seed) : random_(seed) {}

  TreeSpec tree() {
    TreeSpec made{.variables = variables()};
    for (auto left = upto(4); left > 0; --left) made.children.push_back(child(made.children.size()));
    return made;
  }

 private:
  std::size_t upto(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random_); }

  template <class T>
  T one_of(std::vector<T> from) {
    return from[upto(from.size() - 1)];
  }

  std::string text() {
    std::string made;
    for (auto left = upto(8); left > 0; --left) {
      made += one_of<std::string>({"a",        " ",      "\n", "\t",    "\"", "'", "\\",   ": ",
                                   "#",        " #",     "- ", "---\n", "ä",  "|", "\r",   "\x01",
                                   "\x7f",     "\u2028", "{",  "]",     ",",  "5", "null", "%",
                                   "  b: c\n", "\n\n",   "€",  "@",     "!x", "&", "*"});
    }
    return made;
  }

  /// Without the begin of a template's expression, which would have to be one.
  std::string config() {
    auto made = text();
    for (auto at = made.find("{{"); at != std::string::npos; at = made.find("{{")) made.erase(at, 1);
    return made;
  }

  std::string name() {
    return one_of<std::string>({"IP", "PORT", "null", "true", "y", "Null", "_", "x1", "location_path"});
  }

  void value(JsonWriter& out, int depth) {
    switch (upto(depth > 0 ? 6 : 4)) {
      case 0:
        out.null();
        break;
      case 1:
        out.boolean(upto(1) == 1);
        break;
      case 2:
        out.integer(static_cast<std::int64_t>(random_()) - (std::int64_t{1} << 31));
        break;
      case 3:
        out.number(static_cast<double>(random_()) / 1e7 * (upto(1) == 0 ? 1e-20 : 1e20));
        break;
      case 4:
        out.string(text());
        break;
      case 5:
        out.begin_array();
        for (auto left = upto(3); left > 0; --left) value(out, depth - 1);
        out.end_array();
        break;
      default:
        out.begin_object();
        for (std::size_t left = upto(3); left > 0; --left) {
          out.key(text() + std::to_string(left));
          value(out, depth - 1);
        }
        out.end_object();
    }
  }

  std::map<std::string, Json> values() {
    std::map<std::string, Json> made;
    for (auto left = upto(3); left > 0; --left) {
      JsonWriter out;
      value(out, 3);
      made[name()] = Json{out.take().value()};
    }
    return made;
  }

  Variables variables() { return {.user = values(), .global = values()}; }

  ChildSpec child(std::size_t number) {
    ChildSpec made;
    made.name = one_of<std::string>({"pump-", "5", "null.", "-", "true"}) + std::to_string(number);
    made.worker_type = one_of<std::string>({"pump", "mqtt_client", "null", "12", "a: b"});
    made.user_spec = {.config = config(), .variables = variables()};
    if (upto(1) == 1) made.state_mapping["Running"] = one_of<std::string>({"run", "park", "Up", "true"});
    if (upto(1) == 1) made.state_mapping["Stopped"] = "park";
    made.enabled = upto(1) == 1;
    return made;
  }

  std::mt19937 random_;
};

RC_GTEST_PROP(WriteTree, ReadingGivesBackWhatWasWritten, (std::uint32_t seed)) {
  const auto tree = RandomTree(seed).tree();
  const auto text = write_tree(tree);
  const auto read = read_tree(text, "f", nullptr);
  if (!read) RC_FAIL(read.error().message() + "\n" + text);
  RC_ASSERT((*read == tree));
  RC_ASSERT(write_tree(*read) == text);
}

TEST(WriteTree, AnEmptyTreeSaysSo) { EXPECT_EQ(write_tree({}), "children: []\n"); }

TEST(WriteTree, ATreeIsWrittenForReaders) {
  TreeSpec tree{.children = {{.name = "pump-1", .worker_type = "pump"}},
                .variables = {.global = {{"site", {"\"north\""}}}}};
  auto& child = tree.children[0];
  child.enabled = false;
  child.state_mapping = {{"Running", "run"}};
  child.user_spec = {.config = "rpm: 100\n\nmode:\n  - eco\n", .variables = {.user = {{"PORT", {"[1, 2]"}}}}};
  EXPECT_EQ(write_tree(tree), R"(variables:
  global:
    site: "north"
children:
  - name: pump-1
    workerType: pump
    enabled: false
    stateMapping:
      Running: run
    userSpec:
      config: |
        rpm: 100

        mode:
          - eco
      variables:
        user:
          PORT: [1,2]
)");
}

TEST(WriteTree, WhatCouldNotBeAppliedIsWrittenAsWellAsItCanBe) {
  TreeSpec tree{.children = {{.name = "a\xff", .worker_type = "pump"}},
                .variables = {.user = {{"x", {"no json"}}}}};
  EXPECT_EQ(write_tree(tree),
            "variables:\n  user:\n    x: \"no json\"\nchildren:\n  - name: \"a\xef\xbf\xbd\"\n    "
            "workerType: pump\n");
}

}  // namespace
}  // namespace pawl::workers
