// SPDX-License-Identifier: Apache-2.0
#include "pawl/codec.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace std::chrono_literals;
using pawl::Code;
using pawl::decode;
using pawl::encode;

enum class Colour { red, green };

struct Item {
  std::string name;
  pawl::Required<int> qty;
  bool operator==(const Item&) const = default;
};

struct Order {
  std::string id = "unnamed";
  std::vector<Item> items;
  std::optional<std::string> note;
  std::map<std::string, double> prices;
  Colour colour = Colour::green;
  pawl::Time placed{};
  pawl::Duration patience = 90s;
  bool operator==(const Order&) const = default;
};

template <class T>
std::string error_of(std::string_view text) {
  const auto result = decode<T>(text);
  return result ? "decoded" : result.error().message();
}

TEST(Codec, WritesFieldsByNameAndOmitsEmptyOptionals) {
  const Order order{.id = "o-1", .items = {{.name = "nut", .qty = 3}}, .prices = {{"nut", 0.5}}};
  EXPECT_EQ(encode(order).value(),
            R"({"id":"o-1","items":[{"name":"nut","qty":3}],"prices":{"nut":0.5},"colour":"green",)"
            R"("placed":"1970-01-01T00:00:00.000000Z","patience":"90s"})");
}

TEST(Codec, ReadsBackWhatItWrote) {
  const Order order{.id = "ü\"\\\n\x01",
                    .items = {{"a", 1}, {"b", std::numeric_limits<int>::min()}},
                    .note = "n",
                    .prices = {{"x", 1e-300}, {"y", 0.1}},
                    .colour = Colour::red,
                    .placed = pawl::Time(1'900'000'000'123'456us),
                    .patience = -1us};
  EXPECT_EQ(decode<Order>(encode(order).value()).value(), order);
}

TEST(Codec, AbsentFieldsKeepTheirDefaults) {
  const auto order = decode<Order>("{}").value();
  EXPECT_EQ(order, Order{});
  EXPECT_EQ(order.id, "unnamed");
}

TEST(Codec, UnknownFieldsAreIgnored) {
  EXPECT_EQ(decode<Order>(R"({"later": {"x": [1]}})").value(), Order{});
}

TEST(StrictCodec, AFieldThatTheStructLacksIsRefusedWithTheNearestNameAtAnyDepth) {
  const auto error_of = [](std::string_view text) {
    const auto result = pawl::decode_strictly<Order>(text);
    return result ? "decoded" : result.error().message();
  };
  EXPECT_EQ(error_of(R"({"id":"o-1","items":[{"name":"nut","qty":3}],"prices":{"any name":1}})"), "decoded");
  EXPECT_EQ(error_of(R"({"colours":"red"})"), "$.colours: there is no such field (did you mean \"colour\"?)");
  EXPECT_EQ(error_of(R"({"items":[{"qty":1},{"qty":1,"nane":""}]})"),
            "$.items[1].nane: there is no such field (did you mean \"name\"?)");
  EXPECT_EQ(error_of(R"({"utterly different":1})"), "$.utterly different: there is no such field");
  EXPECT_EQ(pawl::decode_strictly<Order>(R"({"later":1})").error().code(), Code::unknown_name);
  EXPECT_EQ(pawl::decode_strictly<Order>(R"({"later":1})").error().field("path"), "$.later");
  EXPECT_EQ(error_of(R"({"items":[{"name":"nut"}]})"), "$.items[0].qty: is required");
}

TEST(Codec, NullIsAnEmptyOptional) {
  EXPECT_EQ(decode<Order>(R"({"note": null})").value().note, std::nullopt);
}

TEST(Codec, AWrongTypeIsReportedWithItsPath) {
  EXPECT_EQ(error_of<Order>(R"({"items":[{"qty":1},{"qty":"x"}]})"),
            "$.items[1].qty: expected integer, got string");
  EXPECT_EQ(error_of<Order>(R"({"prices":{"a b":true}})"), "$.prices.a b: expected number, got boolean");
  EXPECT_EQ(error_of<Order>("[]"), "$: expected object, got array");
  EXPECT_EQ(decode<Order>("[]").error().field("path"), "$");
}

TEST(Codec, AMissingRequiredFieldIsReportedWithItsPath) {
  const auto result = decode<Order>(R"({"items":[{"name":"nut"}]})");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::missing_field);
  EXPECT_EQ(result.error().message(), "$.items[0].qty: is required");
}

TEST(Codec, IntegersOutOfRangeAreRefusedAtTheLimit) {
  struct Small {
    std::int8_t n = 0;
    std::uint64_t u = 0;
  };
  EXPECT_EQ(decode<Small>(R"({"n":-128,"u":18446744073709551615})").value().n, -128);
  EXPECT_EQ(error_of<Small>(R"({"n":128})"), "$.n: expected integer from -128 to 127");
  EXPECT_EQ(error_of<Small>(R"({"u":-1})"), "$.u: expected integer from 0 to 18446744073709551615");
  EXPECT_EQ(error_of<Small>(R"({"n":1.5})"), "$.n: expected integer, got number");
}

TEST(Codec, NumbersOutOfRangeAreRefused) {
  EXPECT_EQ(error_of<double>("1e400"),
            "$: expected number from -1.7976931348623157e+308 to 1.7976931348623157e+308");
  EXPECT_EQ(decode<float>("3e38").value(), 3e38F);
  EXPECT_EQ(decode<float>("1e300").error().code(), Code::wrong_type);
}

TEST(Codec, ALongNameIsCutInAMessage) {
  const auto result = decode<std::map<std::string, int>>("{\"" + std::string(1000, 'n') + "\":true}");
  EXPECT_EQ(result.error().message(), "$." + std::string(64, 'n') + "…: expected integer, got boolean");
}

TEST(Codec, AnUnknownEnumNameIsRefusedWithTheKnownOnes) {
  EXPECT_EQ(error_of<Order>(R"({"colour":"blue"})"), "$.colour: expected one of red, green, got \"blue\"");
}

TEST(Codec, TimesAndDurationsAreText) {
  const auto order = decode<Order>(R"({"placed":"2026-01-31T12:00:00Z","patience":"1.5s"})").value();
  EXPECT_EQ(order.patience, 1500ms);
  EXPECT_EQ(pawl::to_string(order.placed), "2026-01-31T12:00:00.000000Z");
  EXPECT_EQ(error_of<Order>(R"({"placed":"noon"})"),
            "$.placed: expected time such as \"2026-01-31T12:00:00Z\", got string");
  EXPECT_EQ(error_of<Order>(R"({"patience":5})"),
            "$.patience: expected duration such as \"1.5s\" or \"20m\", got integer");
}

TEST(Codec, MalformedTextIsRefusedWithItsOffset) {
  const auto result = decode<Order>(R"({"id": )");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::malformed_json);
  EXPECT_EQ(decode<Order>("{} x").error().code(), Code::malformed_json);
  EXPECT_EQ(decode<Order>("").error().code(), Code::malformed_json);
  EXPECT_EQ(decode<Order>("{\"id\":\"\xff\"}").error().code(), Code::malformed_json);
}

TEST(Codec, DepthIsLimitedAtTheLimit) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(decode<pawl::Json>(nested(32)));
  EXPECT_EQ(decode<pawl::Json>(nested(33)).error().code(), Code::too_deep);
}

TEST(Codec, SizeIsLimitedAtTheLimit) {
  EXPECT_TRUE(decode<std::string>("\"abc\"", {.bytes = 5}));
  EXPECT_EQ(decode<std::string>("\"abcd\"", {.bytes = 5}).error().code(), Code::too_large);
}

TEST(Codec, WhatHasNoJsonFormIsRefusedWhenEncoding) {
  EXPECT_EQ(encode(std::string("\xff")).error().code(), Code::unencodable);
  EXPECT_EQ(encode(std::numeric_limits<double>::infinity()).error().code(), Code::unencodable);
  EXPECT_EQ(encode(static_cast<Colour>(9)).error().code(), Code::unencodable);
  EXPECT_EQ(encode(pawl::Json{"{"}).error().code(), Code::unencodable);
}

TEST(Codec, EmbeddedJsonMayNotBeDeeperThanWhatCanBeReadBack) {
  struct Holder {
    pawl::Json inner;
  };
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(encode(Holder{{nested(31)}}));
  EXPECT_EQ(encode(Holder{{nested(32)}}).error().code(), Code::unencodable);
}

TEST(Codec, AJsonFieldKeepsAnyShape) {
  struct Holder {
    pawl::Json inner;
  };
  EXPECT_EQ(decode<Holder>(R"({"inner": {"a": [1, null]}})").value().inner.text, R"({"a":[1,null]})");
}

TEST(Codec, ADurationFinerThanItsFieldIsRefused) {
  struct Wait {
    std::chrono::seconds pause{};
  };
  EXPECT_EQ(decode<Wait>(R"({"pause":"2m"})").value().pause, 120s);
  EXPECT_FALSE(decode<Wait>(R"({"pause":"1.5s"})"));
}

TEST(Duration, PrintsSecondsAndParsesUnits) {
  EXPECT_EQ(pawl::to_string(pawl::Duration(1'500'000us)), "1.5s");
  EXPECT_EQ(pawl::to_string(pawl::Duration::min()), "-9223372036854.775808s");
  for (const auto value :
       {pawl::Duration::min(), pawl::Duration::max(), pawl::Duration(0us), pawl::Duration(-7us)}) {
    EXPECT_EQ(pawl::parse_duration(pawl::to_string(value)).value(), value);
  }
  EXPECT_EQ(pawl::parse_duration("1.5h").value(), 90min);
  EXPECT_EQ(pawl::parse_duration("-3ms").value(), -3ms);
  EXPECT_EQ(pawl::parse_duration("0.000001s").value(), 1us);
}

TEST(Duration, RefusesWhatIsNoDuration) {
  for (const auto* text : {"", "s", "5", "1.s", ".5s", "1..2s", "1,5s", "5 s", "1e3s", "0.0000001s", "0.5us",
                           "--1s", "99999999999999999999s", "9223372036855s", "0.00000001m", "5weeks"}) {
    EXPECT_FALSE(pawl::parse_duration(text)) << text;
  }
}

}  // namespace
