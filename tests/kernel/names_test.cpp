// SPDX-License-Identifier: Apache-2.0
#include "pawl/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outer {
enum class Hatch { closed, open, locked };
struct Push {};
template <class T>
struct Box {
  struct Inner {};
};
}  // namespace outer

namespace {

using outer::Hatch;
using testing::ElementsAre;

enum class Sparse : std::uint8_t { first = 3, gap_follows = 5, last = 127, beyond = 200 };
enum class Aliased { one = 1, uno = 1, two = 2 };
enum class WithDigits { s0, _private, CamelCase };
enum Plain { plain_value };
struct Local {};

TEST(EnumName, IsTheEnumeratorWithoutItsScope) {
  EXPECT_EQ(pawl::enum_name(Hatch::open), "open");
  EXPECT_EQ(pawl::enum_name(Sparse::last), "last");
}

TEST(EnumName, MayHoldDigitsUnderscoresAndCapitals) {
  EXPECT_EQ(pawl::enum_name(WithDigits::s0), "s0");
  EXPECT_EQ(pawl::enum_name(WithDigits::_private), "_private");
  EXPECT_EQ(pawl::enum_name(WithDigits::CamelCase), "CamelCase");
}

TEST(EnumName, IsEmptyForAValueWithoutAnEnumerator) {
  EXPECT_EQ(pawl::enum_name(static_cast<Hatch>(3)), "");
  EXPECT_EQ(pawl::enum_name(static_cast<Hatch>(-1)), "");
  EXPECT_EQ(pawl::enum_name(static_cast<Sparse>(4)), "");
}

TEST(EnumName, IsEmptyBeyondTheLimit) { EXPECT_EQ(pawl::enum_name(Sparse::beyond), ""); }

TEST(EnumName, OfTwoEnumeratorsWithOneValueIsOneOfThem) {
  EXPECT_EQ(pawl::enum_name(Aliased::uno), pawl::enum_name(Aliased::one));
  EXPECT_THAT(std::string(pawl::enum_name(Aliased::one)), testing::AnyOf("one", "uno"));
}

TEST(EnumValues, AreAllEnumeratorsUpToTheLimitInAscendingOrder) {
  EXPECT_THAT(pawl::enum_values<Hatch>, ElementsAre(Hatch::closed, Hatch::open, Hatch::locked));
  EXPECT_THAT(pawl::enum_values<Sparse>, ElementsAre(Sparse::first, Sparse::gap_follows, Sparse::last));
}

TEST(EnumValue, IsFoundByItsExactName) {
  EXPECT_EQ(pawl::enum_value<Hatch>("locked"), Hatch::locked);
  EXPECT_EQ(pawl::enum_value<Hatch>("Locked"), std::nullopt);
  EXPECT_EQ(pawl::enum_value<Hatch>("lock"), std::nullopt);
  EXPECT_EQ(pawl::enum_value<Hatch>(""), std::nullopt);
}

TEST(EnumValue, IsTheInverseOfTheName) {
  for (const auto value : pawl::enum_values<Sparse>) {
    EXPECT_EQ(pawl::enum_value<Sparse>(pawl::enum_name(value)), value);
  }
}

TEST(TypeName, HasNoNamespaceAndNoEnclosingClass) {
  EXPECT_EQ(pawl::type_name<outer::Push>(), "Push");
  EXPECT_EQ(pawl::type_name<outer::Box<int>::Inner>(), "Inner");
  EXPECT_EQ(pawl::type_name<int>(), "int");
}

TEST(TypeName, OfATypeInAnUnnamedNamespaceIsPlainToo) {
  EXPECT_EQ(pawl::type_name<Local>(), "Local");
  struct InFunction {};
  EXPECT_EQ(pawl::type_name<InFunction>(), "InFunction");
}

TEST(TypeName, KeepsItsTemplateArguments) {
  EXPECT_EQ(pawl::type_name<outer::Box<int>>(), "Box<int>");
  EXPECT_EQ(pawl::type_name<outer::Box<outer::Push>>(), "Box<outer::Push>");
}

TEST(ScopedEnum, IsNeitherAPlainEnumNorAnythingElse) {
  EXPECT_TRUE(pawl::ScopedEnum<Hatch>);
  EXPECT_FALSE(pawl::ScopedEnum<Plain>);
  EXPECT_FALSE(pawl::ScopedEnum<int>);
}

TEST(FixedString, HoldsItsTextAsATemplateArgument) {
  constexpr auto length = []<pawl::FixedString Text>() { return Text.view().size(); };
  EXPECT_EQ(length.operator()<"three">(), 5U);
  EXPECT_EQ(length.operator()<"">(), 0U);
  EXPECT_EQ(pawl::FixedString<4>(std::string_view("abc")).view(), "abc");
}

}  // namespace
