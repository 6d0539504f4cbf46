// SPDX-License-Identifier: Apache-2.0
#include "workers/config/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace pawl::workers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string json_of(std::string_view yaml) {
  const auto read = read_yaml(yaml);
  return read ? read->json : read.error().to_string();
}

Error error_of(std::string_view yaml) {
  const auto read = read_yaml(yaml);
  if (read) return {Code::internal, "it was read as " + read->json};
  return read.error();
}

void expect_refused(std::string_view yaml, int line, int column, const std::string& message) {
  const auto error = error_of(yaml);
  EXPECT_EQ(error.code(), Code::config_invalid) << yaml;
  EXPECT_EQ(error.field("line"), std::to_string(line)) << error.to_string();
  EXPECT_EQ(error.field("column"), std::to_string(column)) << error.to_string();
  EXPECT_THAT(error.message(), StartsWith("line " + std::to_string(line) + ", column ")) << yaml;
  EXPECT_THAT(error.message(), HasSubstr(message)) << yaml;
}

TEST(ReadYaml, MappingsAndListsBecomeObjectsAndArrays) {
  EXPECT_EQ(json_of("a: 1\nb:\n  - x\n  - {c: d}\n"), R"({"a":1,"b":["x",{"c":"d"}]})");
}

TEST(ReadYaml, AnEmptyTextIsNull) {
  EXPECT_EQ(json_of(""), "null");
  EXPECT_EQ(json_of("# nothing here\n"), "null");
}

TEST(ReadYaml, PlainScalarsAreReadByTheCoreSchema) {
  EXPECT_EQ(json_of("[~, null, NULL, ]"), "[null,null,null]");
  EXPECT_EQ(json_of("[true, True, FALSE]"), "[true,true,false]");
  EXPECT_EQ(json_of("[0, -12, +7, 007, 0o17, 0xfF, 18446744073709551615, -9223372036854775808]"),
            "[0,-12,7,7,15,255,18446744073709551615,-9223372036854775808]");
  EXPECT_EQ(json_of("[1.5, .5, 1., 2e3, -1E-2, +0.25]"), "[1.5,0.5,1.0,2000.0,-0.01,0.25]");
}

TEST(ReadYaml, WhatOlderYamlTookForOtherKindsStaysText) {
  EXPECT_EQ(json_of("[yes, No, on, 1:30, 0b1, 1_000, 2026-01-02, ., -, 0x, 1e]"),
            R"(["yes","No","on","1:30","0b1","1_000","2026-01-02",".","-","0x","1e"])");
}

TEST(ReadYaml, WhatIsInQuotesOrInABlockIsText) {
  EXPECT_EQ(json_of("[\"1\", 'true', !!str 5, \"\"]"), R"(["1","true","5",""])");
  EXPECT_EQ(json_of("a: |\n  5\n"), R"({"a":"5\n"})");
  EXPECT_EQ(json_of("a: \"\\x01\\u00e9\\0\""), "{\"a\":\"\\u0001\u00e9\\u0000\"}");
}

TEST(ReadYaml, NumbersThatCannotBeHeldAreRefused) {
  expect_refused("a: 1\nb: 18446744073709551616\n", 2, 4, "does not fit in 64 bits");
  expect_refused("b: -9223372036854775809", 1, 4, "does not fit in 64 bits");
  expect_refused("b: 1e999", 1, 4, "put it in quotes");
  expect_refused("b: .inf", 1, 4, "no JSON form");
  expect_refused("b: .NaN", 1, 4, "no JSON form");
}

TEST(ReadYaml, TheLineOfEachValueIsKnownByItsPath) {
  const auto read = read_yaml("# first\na: 1\nb:\n  c: x\n  d:\n    - 1\n    - {e: 2}\n").value();
  const std::map<std::string, int, std::less<>> expected{{"$", 2},        {"$.a", 2},       {"$.b", 3},
                                                         {"$.b.c", 4},    {"$.b.d", 5},     {"$.b.d[0]", 6},
                                                         {"$.b.d[1]", 7}, {"$.b.d[1].e", 7}};
  EXPECT_EQ(read.lines, expected);
}

TEST(ReadYaml, TheFirstLineOfATextBlockIsKnown) {
  const auto read = read_yaml_document("a: |\n  x\nb: >\n  y\nc:\n  |\n  z\nd: \"|\"\n").value();
  const std::map<std::string, int, std::less<>> expected{{"$.a", 2}, {"$.c", 7}};
  EXPECT_EQ(read.block_lines, expected);
}

TEST(ReadYaml, AMarkOfUtf8AtTheBeginningIsSkipped) {
  EXPECT_EQ(json_of("\xef\xbb\xbf"
                    "a: 1"),
            R"({"a":1})");
}

TEST(ReadYaml, WindowsLineEndsAreRead) { EXPECT_EQ(json_of("a: 1\r\nb: x\r\n"), R"({"a":1,"b":"x"})"); }

TEST(ReadYaml, AKeyGivenTwiceIsRefusedWithBothLines) {
  expect_refused("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", 5, 3, "the key \"c\" is given twice, first on line 3");
  EXPECT_EQ(error_of("b: {c: 1, c: 2}").field("key"), "b.c");
}

TEST(ReadYaml, AnchorsAndAliasesAreRefused) {
  for (const auto* text :
       {"a: &x 1\n", "a: 1\nb: &x {c: 1}\n", "a: *x\n", "a: &x [*x, *x]\n", "files: *.log\n"}) {
    EXPECT_THAT(error_of(text).message(), HasSubstr("aliases (*name) are not read")) << text;
  }
}

TEST(ReadYaml, ANestOfAliasesCostsNothing) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  expect_refused(text, 1, 5, "aliases");
}

TEST(ReadYaml, TagsAreRefused) { expect_refused("a: !!binary aGk=\n", 1, 4, "leave it out"); }

TEST(ReadYaml, SeveralDocumentsAreRefused) {
  expect_refused("a: 1\n---\nb: 2\n", 2, 1, "a file holds one");
  EXPECT_EQ(json_of("---\na: 1\n...\n"), R"({"a":1})");
}

TEST(ReadYaml, AKeyIsAText) {
  expect_refused("a: 1\n[b]: 2\n", 2, 1, "a key is a text");
  expect_refused("rpm: {{ .RPM }}\n", 1, 7, "a template such as {{ .NAME }} stands in quotes");
  expect_refused("~: 2\n", 1, 1, "a key is empty");
  EXPECT_EQ(json_of("1: a\ntrue: b\n"), R"({"1":"a","true":"b"})");
}

TEST(ReadYaml, ATabInTheIndentationIsNamed) {
  expect_refused("a:\n\tb: 1\n", 2, 1, "indent with spaces");
  expect_refused("a:\n  b: 1\n\tc: 2\n", 3, 1, "indent with spaces");
}

TEST(ReadYaml, SyntaxErrorsSayWhatWouldBeRight) {
  expect_refused("a: [1, 2\n", 2, 1, "write [a, b]");
  expect_refused("a: {b: 1\n", 2, 1, "write {a: 1, b: 2}");
  expect_refused("a: 1\n b: 2\n", 2, 3, "put a text that has \": \" in quotes");
  expect_refused("a: \"x\n", 1, 4, "not closed");
  expect_refused("a: 'it''s\nb: 1\n", 1, 4, "not closed");
  expect_refused("a: 1\n\"b", 2, 3, "not closed");
  expect_refused("a: \"\\q\"\n", 1, 7, "write \\\\ for a backslash");
  expect_refused("a: b: c\n", 1, 5, "put a text that has \": \" in quotes");
  expect_refused("a: @x\n", 1, 4, "put the text in quotes");
  expect_refused("a:\n  - 1\n  b: 2\n", 3, 3, "stand in one column");
}

TEST(ReadYaml, ControlCharactersAreRefused) {
  expect_refused(std::string_view("a: 1\nb: \x04x", 9), 2, 4, "\\x04 in a text in double quotes");
  expect_refused(std::string_view("a\0", 2), 1, 2, "0x00");
}

TEST(ReadYaml, WhatIsNotUtf8IsRefused) { expect_refused("a: \xff\n", 1, 1, "not UTF-8"); }

TEST(ReadYaml, NestingIsLimited) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(json_of(nested(YamlLimits::kDepth)), nested(YamlLimits::kDepth));
  expect_refused(nested(YamlLimits::kDepth + 1), 1, 33, "more than 32");
  EXPECT_EQ(error_of(nested(100'000)).code(), Code::config_invalid);
}

TEST(ReadYaml, TheTextIsLimited) {
  const auto text = [](std::size_t bytes) { return "a: '" + std::string(bytes - 5, 'x') + "'"; };
  EXPECT_TRUE(read_yaml(text(YamlLimits::kBytes)).has_value());
  expect_refused(text(YamlLimits::kBytes + 1), 1, 1, "at most 1048576 are read");
}

TEST(ReadYaml, KeysAreLimited) {
  EXPECT_TRUE(read_yaml(std::string(YamlLimits::kKeyBytes, 'k') + ": 1").has_value());
  expect_refused(std::string(YamlLimits::kKeyBytes + 1, 'k') + ": 1", 1, 1, "at most 160");
}

TEST(ReadYaml, ManyValuesBelowLongKeysAreRefusedBeforeTheyFillTheMemory) {
  std::string text;
  for (int depth = 0; depth < 30; ++depth) text += "{" + std::string(YamlLimits::kKeyBytes, 'k') + ": ";
  text += "[";
  for (int i = 0; i < 200'000; ++i) text += "1,";
  text += "]" + std::string(30, '}');
  EXPECT_THAT(error_of(text).message(), HasSubstr("too many values below long keys"));
}

TEST(ReadYaml, ReadingOnSeveralThreadsAtOnceIsSafe) {
  std::vector<std::string> read(4);
  {
    std::vector<std::jthread> threads;
    for (auto& json : read) threads.emplace_back([&json] { json = json_of("a: [1, x]\n"); });
  }
  EXPECT_THAT(read, testing::Each(R"({"a":[1,"x"]})"));
}

}  // namespace
}  // namespace pawl::workers
