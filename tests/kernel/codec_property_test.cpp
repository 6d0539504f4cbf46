// SPDX-License-Identifier: Apache-2.0
// Arbitrary values through the codec and arbitrary bytes into it.
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <bit>
#include <cmath>
#include <set>

#include "pawl/codec.hpp"

namespace {

using pawl::Code;
using pawl::decode;
using pawl::encode;

enum class Paint { red, green, blue };

struct Leaf {
  bool flag = false;
  std::int8_t small = 0;
  std::int64_t wide = 0;
  std::uint64_t natural = 0;
  double real = 0;
  std::string text;
  Paint colour = Paint::green;
  pawl::Time at{};
  pawl::Duration wait{};
  std::optional<std::string> note;
  bool operator==(const Leaf&) const = default;
};

struct Branch {
  pawl::Required<std::string> name;
  std::vector<Leaf> leaves;
  std::map<std::string, Leaf> by_name;
  std::optional<Leaf> maybe;
  std::array<std::int32_t, 3> three{};
  bool operator==(const Branch&) const = default;
};

struct Tree {
  Branch trunk;
  std::vector<Branch> branches;
  std::map<std::string, std::vector<std::optional<int>>> numbers;
  pawl::Json anything;
  bool operator==(const Tree&) const = default;
};

// ---- arbitrary values -------------------------------------------------------------------------------------

/// Numbers of their whole range, although the containers around them are kept small.
template <class T>
rc::Gen<T> whole(rc::Gen<T> numbers) {
  return rc::gen::resize(rc::kNominalSize, std::move(numbers));
}
template <class T>
rc::Gen<T> whole() {
  return whole(rc::gen::arbitrary<T>());
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | (point >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Any text, control characters and all planes included.
rc::Gen<std::string> texts() {
  const auto point = whole(rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 0x80),
                                          rc::gen::inRange<std::uint32_t>(0x80, 0xd800),
                                          rc::gen::inRange<std::uint32_t>(0xe000, 0x110000)));
  return rc::gen::map(rc::gen::container<std::vector<std::uint32_t>>(point), [](const auto& points) {
    std::string text;
    for (const auto each : points) append_utf8(text, each);
    return text;
  });
}

rc::Gen<double> numbers() {
  const auto any =
      rc::gen::map(whole<std::uint64_t>(), [](auto bits) { return std::bit_cast<double>(bits); });
  return rc::gen::suchThat(any, [](double number) { return std::isfinite(number); });
}

/// The years 1 to 9999, which RFC 3339 can write.
rc::Gen<pawl::Time> times() {
  return rc::gen::map(whole(rc::gen::inRange<std::int64_t>(-62'135'596'800'000'000, 253'402'300'799'999'999)),
                      [](std::int64_t us) { return pawl::Time(pawl::Duration(us)); });
}

template <class T>
rc::Gen<std::optional<T>> optionally(rc::Gen<T> some) {
  return rc::gen::map(rc::gen::maybe(std::move(some)), [](const rc::Maybe<T>& value) {
    return value ? std::optional<T>(*value) : std::nullopt;
  });
}

rc::Gen<Leaf> leaves() {
  return rc::gen::exec([] {
    return Leaf{.flag = *rc::gen::arbitrary<bool>(),
                .small = *whole<std::int8_t>(),
                .wide = *whole<std::int64_t>(),
                .natural = *whole<std::uint64_t>(),
                .real = *numbers(),
                .text = *texts(),
                .colour = *rc::gen::element(Paint::red, Paint::green, Paint::blue),
                .at = *times(),
                .wait = pawl::Duration(*whole<std::int64_t>()),
                .note = *optionally(texts())};
  });
}

rc::Gen<Branch> branches() {
  return rc::gen::exec([] {
    return Branch{.name = *texts(),
                  .leaves = *rc::gen::container<std::vector<Leaf>>(leaves()),
                  .by_name = *rc::gen::container<std::map<std::string, Leaf>>(texts(), leaves()),
                  .maybe = *optionally(leaves()),
                  .three = *whole<std::array<std::int32_t, 3>>()};
  });
}

/// Compact JSON of any shape, at most `depth` levels of it.
std::string any_json(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 6 : 4);
  if (kind == 0) return *rc::gen::element<std::string>("null", "true", "false");
  if (kind == 1) return std::to_string(*whole<std::int64_t>());
  if (kind < 4) return encode(*texts()).value();
  const int count = *rc::gen::inRange(0, 4);
  std::string out(1, kind == 4 ? '[' : '{');
  for (int i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    if (kind == 5) out += "\"k" + std::to_string(i) + "\":";
    out += any_json(depth - 1);
  }
  return out + (kind == 4 ? ']' : '}');
}

rc::Gen<Tree> trees() {
  return rc::gen::resize(8, rc::gen::exec([] {
                           using Numbers = std::vector<std::optional<int>>;
                           return Tree{.trunk = *branches(),
                                       .branches = *rc::gen::container<std::vector<Branch>>(branches()),
                                       .numbers = *rc::gen::container<std::map<std::string, Numbers>>(
                                           texts(), rc::gen::container<Numbers>(optionally(whole<int>()))),
                                       .anything = {any_json(3)}};
                         }));
}

// ---- JSON with more in it ---------------------------------------------------------------------------------

/// Puts a field that nobody knows before each field of each struct.
class Extender {
 public:
  explicit Extender(std::size_t first) : next_(first) {}

  void copy(pawl::JsonValue in, bool is_struct, pawl::JsonWriter& out) {
    if (in.kind() == pawl::JsonKind::array) {
      out.begin_array();
      for (std::size_t i = 0; i < in.size(); ++i) copy(in.at(i), is_struct, out);
      out.end_array();
    } else if (in.kind() == pawl::JsonKind::object) {
      out.begin_object();
      for (std::size_t i = 0; i < in.size(); ++i) copy_member(in.key_at(i), in.at(i), is_struct, out);
      out.end_object();
    } else {
      out.embed(in.to_text());
    }
  }

 private:
  void copy_member(std::string_view key, pawl::JsonValue value, bool is_struct, pawl::JsonWriter& out) {
    static constexpr std::array kUnknown{"null", "-1.5e3",          "\"text\"",
                                         "[]",   R"([1,{"a":[]}])", R"({"text":{}})"};
    if (is_struct) out.key("unknown" + std::to_string(next_)).embed(kUnknown[next_ % kUnknown.size()]);
    ++next_;
    out.key(key);
    if (is_struct && key == "anything") {
      out.embed(value.to_text());
    } else {
      const bool is_map = is_struct && (key == "by_name" || key == "numbers");
      copy(value, !is_map, out);
    }
  }

  std::size_t next_;
};

// ---- bytes ------------------------------------------------------------------------------------------------

/// A few bytes changed, removed or inserted at arbitrary places.
std::string damaged(std::string text) {
  for (int i = *rc::gen::inRange(1, 4); i > 0 && !text.empty(); --i) {
    const auto at = *whole(rc::gen::inRange<std::size_t>(0, text.size()));
    const int how = *rc::gen::inRange(0, 4);
    if (how == 0) text[at] = *rc::gen::arbitrary<char>();
    if (how == 1) text.erase(at, *rc::gen::inRange<std::size_t>(1, 8));
    if (how == 2)
      text.insert(at, 1, *rc::gen::element('{', '}', '[', ']', '"', ',', ':', '\\', '0', '-', 'e'));
    if (how == 3) text.resize(at);
  }
  return text;
}

/// Decoding answers: with a value that survives another round, or with one of the documented errors.
void check_answer(std::string_view bytes) {
  const auto tree = decode<Tree>(bytes);
  if (tree) {
    const auto again = encode(*tree);
    RC_ASSERT(again.has_value());
    RC_ASSERT(decode<Tree>(*again).value() == *tree);
  } else {
    const std::set<Code> documented{Code::malformed_json, Code::too_deep, Code::too_large, Code::wrong_type,
                                    Code::missing_field};
    RC_ASSERT(documented.contains(tree.error().code()));
    RC_ASSERT(!tree.error().message().empty());
  }
}

RC_GTEST_PROP(CodecProperty, WhatWasWrittenIsReadBackEqual, ()) {
  const auto tree = *trees();
  const auto text = encode(tree);
  RC_ASSERT(text.has_value());
  RC_ASSERT(decode<Tree>(*text).value() == tree);
}

RC_GTEST_PROP(CodecProperty, UnknownFieldsChangeNothing, ()) {
  const auto tree = *trees();
  const auto document = pawl::JsonDocument::parse(encode(tree).value()).value();
  pawl::JsonWriter out;
  Extender(*rc::gen::inRange<std::size_t>(0, 6)).copy(document.root(), true, out);
  const auto text = out.take().value();
  RC_ASSERT(text.size() > encode(tree).value().size());
  RC_ASSERT(decode<Tree>(text).value() == tree);
}

RC_GTEST_PROP(CodecProperty, ArbitraryBytesGetAnAnswer, (const std::string& bytes)) { check_answer(bytes); }

RC_GTEST_PROP(CodecProperty, DamagedJsonGetsAnAnswer, ()) { check_answer(damaged(encode(*trees()).value())); }

RC_GTEST_PROP(CodecProperty, JsonOfAnotherShapeGetsAnAnswer, ()) { check_answer(any_json(4)); }

}  // namespace
