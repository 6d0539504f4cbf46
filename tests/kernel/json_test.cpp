// SPDX-License-Identifier: Apache-2.0
#include "pawl/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernel/utf8.hpp"

namespace {

using pawl::Code;
using pawl::JsonDocument;
using pawl::JsonKind;
using pawl::JsonWriter;
using testing::HasSubstr;

JsonDocument parse(std::string_view text) { return JsonDocument::parse(text).value(); }

std::string reprinted(std::string_view text) { return parse(text).root().to_text(); }

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonDocument, GivesEachValueItsKind) {
  const auto document = parse(R"([null, true, -1, 1.5, "s", [], {}])");
  const auto kinds = {JsonKind::null,   JsonKind::boolean, JsonKind::integer, JsonKind::number,
                      JsonKind::string, JsonKind::array,   JsonKind::object};
  std::size_t index = 0;
  for (const auto kind : kinds) EXPECT_EQ(document.root().at(index++).kind(), kind);
  EXPECT_EQ(document.root().at(3).kind_name(), "number");
}

TEST(JsonDocument, AMovedDocumentKeepsItsValues) {
  auto document = parse(R"({"a": "text"})");
  const auto value = document.root().find("a");
  const auto moved = std::move(document);
  EXPECT_EQ(value->as_string(), "text");
  EXPECT_EQ(moved.root().find("a")->as_string(), "text");
}

TEST(JsonDocument, LargeTextsAreReadWhole) {
  std::string text = "[0";
  for (int i = 1; i < 5000; ++i) text.append(",").append(std::to_string(i));
  const auto document = parse(text + "]");
  ASSERT_EQ(document.root().size(), 5000U);
  EXPECT_EQ(document.root().at(4999).as_integer(), 4999);
}

TEST(JsonDocument, MalformedTextIsRefusedWithItsOffset) {
  const auto error = JsonDocument::parse(R"({"a": nul})").error();
  EXPECT_EQ(error.code(), Code::malformed_json);
  EXPECT_EQ(error.field("offset"), "6");
  for (const auto* text : {"", " ", "{", "[1,]", "{\"a\"}", "01", "+1", "1.", ".5", "NaN", "'a'", "[1] x",
                           "\"\x01\"", "\"\\ud800\"", "\"\xff\"", "// c\n1"}) {
    EXPECT_FALSE(JsonDocument::parse(text)) << text;
  }
}

TEST(JsonDocument, DepthIsLimitedAtTheLimit) {
  EXPECT_TRUE(JsonDocument::parse(nested(3), {.depth = 3}));
  EXPECT_EQ(JsonDocument::parse(nested(4), {.depth = 3}).error().code(), Code::too_deep);
  EXPECT_EQ(JsonDocument::parse(nested(4), {.depth = 3}).error().field("limit"), "3");
}

TEST(JsonDocument, SizeIsLimitedAtTheLimit) {
  EXPECT_TRUE(JsonDocument::parse("[1]", {.bytes = 3}));
  EXPECT_EQ(JsonDocument::parse("[1] ", {.bytes = 3}).error().code(), Code::too_large);
}

TEST(JsonValue, AnotherKindIsNothing) {
  const auto document = parse(R"({"text": "1"})");
  const auto text = *document.root().find("text");
  EXPECT_EQ(text.as_boolean(), std::nullopt);
  EXPECT_EQ(text.as_integer(), std::nullopt);
  EXPECT_EQ(text.as_unsigned(), std::nullopt);
  EXPECT_EQ(text.as_number(), std::nullopt);
  EXPECT_EQ(document.root().as_string(), std::nullopt);
  EXPECT_EQ(text.size(), 0U);
  EXPECT_EQ(text.find("text"), std::nullopt);
}

TEST(JsonValue, IntegersReachFromTheSignedToTheUnsignedLimit) {
  const auto document = parse("[-9223372036854775808, 9223372036854775807, 18446744073709551615]");
  EXPECT_EQ(document.root().at(0).as_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(document.root().at(0).as_unsigned(), std::nullopt);
  EXPECT_EQ(document.root().at(1).as_unsigned(), 9223372036854775807U);
  EXPECT_EQ(document.root().at(2).as_integer(), std::nullopt);
  EXPECT_EQ(document.root().at(2).as_unsigned(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse("18446744073709551616").root().kind(), JsonKind::number);
}

TEST(JsonValue, NumbersAreReadExactly) {
  for (const double value : {0.1, 1.0 / 3, 1.8446744039770552e39, 5e-324, 2.2250738585072011e-308,
                             std::numeric_limits<double>::max()}) {
    JsonWriter out;
    EXPECT_EQ(parse(out.number(value).take().value()).root().as_number(), value);
  }
  EXPECT_EQ(parse("1844674403977055184467440397705516161616").root().as_number(), 1.8446744039770552e39);
}

TEST(JsonValue, ANumberBeyondAllDoublesIsNothingButKeepsItsSign) {
  EXPECT_EQ(parse("1e400").root().as_number(), std::nullopt);
  EXPECT_EQ(reprinted("[1e400,-1e400]"), "[1e999,-1e999]");
  EXPECT_EQ(reprinted("[1e999,-1e999]"), "[1e999,-1e999]");
}

TEST(JsonValue, MembersKeepTheirOrder) {
  const auto document = parse(R"({"b": 1, "a": 2})");
  ASSERT_EQ(document.root().size(), 2U);
  EXPECT_EQ(document.root().key_at(0), "b");
  EXPECT_EQ(document.root().at(1).as_integer(), 2);
}

TEST(JsonValue, OfARepeatedNameTheLastCounts) {
  const auto document = parse(R"({"a": 1, "a": 2})");
  EXPECT_EQ(document.root().size(), 1U);
  EXPECT_EQ(document.root().find("a")->as_integer(), 2);
}

TEST(JsonValue, PrintsCompactTextThatIsReadAsItself) {
  EXPECT_EQ(reprinted(R"( { "a" : [ 1 , 2.5, -0.0, null, true ], "\u00fc\n": {} } )"),
            "{\"a\":[1,2.5,-0.0,null,true],\"ü\\n\":{}}");
  EXPECT_EQ(reprinted("18446744073709551615"), "18446744073709551615");
}

TEST(JsonValue, AWholeNumberStaysANumberWhenPrinted) {
  EXPECT_EQ(reprinted("[35, 3.5e1, 1e22]"), "[35,35.0,1e+22]");
}

TEST(JsonWriter, PutsCommasBetweenElementsAndMembers) {
  JsonWriter out;
  out.begin_object().key("a").begin_array().integer(std::int64_t{1}).null().begin_object().end_object();
  out.end_array().key("b").boolean(false).end_object();
  EXPECT_EQ(out.take().value(), R"({"a":[1,null,{}],"b":false})");
}

TEST(JsonWriter, EscapesWhatJsonDoesNotAllowAndNothingElse) {
  JsonWriter out;
  out.string("\"\\\n\r\t\x01/\x7fü😀");
  EXPECT_EQ(out.take().value(), "\"\\\"\\\\\\n\\r\\t\\u0001/\x7fü😀\"");
}

TEST(JsonWriter, WritesTheShortestNumberThatIsReadBack) {
  JsonWriter out;
  out.begin_array().number(0.1).number(-0.0).number(0.0).number(1e300).number(3.0).end_array();
  EXPECT_EQ(out.take().value(), "[0.1,-0.0,0.0,1e+300,3.0]");
}

TEST(JsonWriter, RefusesNumbersThatAreNotFinite) {
  for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    JsonWriter out;
    EXPECT_EQ(out.number(value).take().error().code(), Code::unencodable);
  }
}

TEST(JsonWriter, RefusesTextThatIsNotUtf8) {
  for (const auto* text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    JsonWriter out;
    EXPECT_EQ(out.string(text).take().error().code(), Code::unencodable);
    JsonWriter name;
    EXPECT_FALSE(name.begin_object().key(text).null().end_object().take());
  }
}

TEST(JsonWriter, TheFirstRefusalIsReportedWithWhatCameBefore) {
  JsonWriter out;
  out.begin_object().key("size").number(std::nan("")).key("name").string("\xff").end_object();
  EXPECT_EQ(out.take().error().message(), "a number must be finite (after {\"size\":)");
}

TEST(JsonWriter, RefusesWhatIsDeeperThanCanBeReadBack) {
  const auto write = [](std::size_t depth) {
    JsonWriter out;
    for (std::size_t i = 0; i < depth; ++i) out.begin_array();
    for (std::size_t i = 0; i < depth; ++i) out.end_array();
    return out.take();
  };
  EXPECT_TRUE(JsonDocument::parse(write(32).value()));
  EXPECT_EQ(write(33).error().code(), Code::unencodable);
}

TEST(JsonWriter, EmbedsJsonAsItIsAndRefusesWhatIsNone) {
  JsonWriter out;
  out.begin_array().embed(R"({"a": 1})").embed("2").end_array();
  EXPECT_EQ(out.take().value(), R"([{"a": 1},2])");
  JsonWriter broken;
  EXPECT_THAT(broken.embed("{").take().error().message(), HasSubstr("embedded JSON: not valid JSON"));
}

TEST(Shown, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(pawl::shown("short"), "short");
  EXPECT_EQ(pawl::shown(std::string(64, 'a')), std::string(64, 'a'));
  EXPECT_EQ(pawl::shown(std::string(65, 'a')), std::string(64, 'a') + "…");
  EXPECT_EQ(pawl::shown(std::string(63, 'a') + "üü"), std::string(63, 'a') + "ü…");
}

TEST(Shown, IsUtf8WhateverItIsGiven) {
  EXPECT_EQ(pawl::shown("a\xff\xfe"
                        "b"),
            "a??b");
  EXPECT_EQ(pawl::shown("ü\xc3"), "ü?");
}

}  // namespace
