// SPDX-License-Identifier: Apache-2.0
// Variables: how they are handed down, which are allowed, how they are stored; and "did you mean".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "pawl/worker_spec.hpp"

namespace {

using pawl::Code;
using pawl::decode;
using pawl::encode;
using pawl::inherit;
using pawl::Json;
using pawl::nearest_name;
using pawl::validate;
using pawl::Variables;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The error of variables that must not be allowed.
pawl::Error refusal_of(const Variables& variables) {
  const auto checked = validate(variables);
  return checked ? pawl::Error(Code::invalid_argument, "it was allowed") : checked.error();
}

/// The rendered text, or the error's.
std::string rendered_with(std::string_view text, const Variables& variables,
                          const pawl::InternalVariables& internal = {}) {
  const auto result = pawl::render(text, variables, internal);
  return result ? *result : result.error().to_string();
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Inherit, TheChildSeesWhatItsParentHas) {
  const auto seen =
      inherit({.user = {{"IP", {"\"10.0.0.7\""}}}, .global = {{"site", {"\"north\""}}}}, Variables{});
  EXPECT_THAT(seen.user, ElementsAre(Pair("IP", Json{"\"10.0.0.7\""})));
  EXPECT_THAT(seen.global, ElementsAre(Pair("site", Json{"\"north\""})));
}

TEST(Inherit, TheChildAddsItsOwn) {
  const auto seen = inherit({.user = {{"IP", {"\"10.0.0.7\""}}}}, {.user = {{"DEVICE_ID", {"7"}}}});
  EXPECT_THAT(seen.user, ElementsAre(Pair("DEVICE_ID", Json{"7"}), Pair("IP", Json{"\"10.0.0.7\""})));
}

TEST(Inherit, TheChildsValueWinsInBothNamespaces) {
  const auto seen = inherit({.user = {{"PORT", {"1"}}}, .global = {{"site", {"1"}}}},
                            {.user = {{"PORT", {"2"}}}, .global = {{"site", {"2"}}}});
  EXPECT_THAT(seen.user, ElementsAre(Pair("PORT", Json{"2"})));
  EXPECT_THAT(seen.global, ElementsAre(Pair("site", Json{"2"})));
}

TEST(Inherit, ANullOfTheChildIsAValueToo) {
  const auto seen = inherit({.user = {{"PORT", {"1"}}}}, {.user = {{"PORT", {"null"}}}});
  EXPECT_THAT(seen.user, ElementsAre(Pair("PORT", Json{"null"})));
}

TEST(Inherit, ObjectsAreTakenWholeAndNotMerged) {
  const auto seen =
      inherit({.user = {{"plc", {R"({"host":"a","port":1})"}}}}, {.user = {{"plc", {R"({"port":2})"}}}});
  EXPECT_THAT(seen.user, ElementsAre(Pair("plc", Json{R"({"port":2})"})));
}

TEST(Inherit, TheNamespacesDoNotMix) {
  const auto seen = inherit({.user = {{"x", {"1"}}}}, {.global = {{"x", {"2"}}}});
  EXPECT_THAT(seen.user, ElementsAre(Pair("x", Json{"1"})));
  EXPECT_THAT(seen.global, ElementsAre(Pair("x", Json{"2"})));
}

TEST(Inherit, NothingFromNothingIsNothing) {
  const auto seen = inherit({}, {});
  EXPECT_THAT(seen.user, IsEmpty());
  EXPECT_THAT(seen.global, IsEmpty());
}

TEST(Inherit, GlobalsReachTheThirdLevelAndEachLevelMayAdd) {
  const Variables root{.global = {{"site", {"\"north\""}}, {"cluster", {"\"c1\""}}}};
  const auto middle = inherit(root, {.global = {{"cluster", {"\"c2\""}}}});
  const auto parent = inherit(middle, {.global = {{"hall", {"3"}}}});
  const auto leaf = inherit(parent, {.user = {{"IP", {"\"10.0.0.7\""}}}});
  EXPECT_EQ(rendered_with("{{ .global.site }} {{ .global.cluster }} {{ .global.hall }} {{ .IP }}", leaf),
            "north c2 3 10.0.0.7");
}

TEST(Validate, OrdinaryVariablesAreAllowed) {
  EXPECT_TRUE(validate(Variables{}));
  EXPECT_TRUE(
      validate(Variables{.user = {{"IP", {"\"10.0.0.7\""}}, {"_x9", {"null"}}, {"plc", {R"({"a-b":[1]})"}}},
                         .global = {{"cluster_id", {"1.5"}}}}));
}

TEST(Validate, AUserVariableCannotBeCalledLikeANamespace) {
  for (const std::string name : {"global", "internal"}) {
    const auto error = refusal_of({.user = {{"IP", {"1"}}, {name, {"1"}}}});
    EXPECT_EQ(error.code(), Code::spec_invalid);
    EXPECT_EQ(error.field("key"), name);
    EXPECT_THAT(error.message(), HasSubstr("cannot be named \"" + name + "\""));
    EXPECT_THAT(error.message(), HasSubstr("give it another name"));
  }
}

TEST(Validate, BelowGlobalTheseNamesHideNothing) {
  const Variables variables{.global = {{"global", {"1"}}, {"internal", {"2"}}}};
  EXPECT_TRUE(validate(variables));
  EXPECT_EQ(rendered_with("{{ .global.global }}{{ .global.internal }}", variables), "12");
}

TEST(Validate, ANameThatNoTemplateCanUseIsRefused) {
  for (const std::string name : {"", "plc-1", "1st", "a.b", "a b", "größe", "a\n"}) {
    const auto user = refusal_of({.user = {{name, {"1"}}}});
    EXPECT_EQ(user.code(), Code::spec_invalid) << name;
    EXPECT_EQ(user.field("key"), name);
    EXPECT_THAT(user.message(), HasSubstr("the user variable \"" + name + "\""));
    EXPECT_THAT(user.message(), HasSubstr("letters, digits and '_'"));
    const auto global = refusal_of({.global = {{name, {"1"}}}});
    EXPECT_EQ(global.code(), Code::spec_invalid) << name;
    EXPECT_EQ(global.field("key"), "global." + name);
    EXPECT_THAT(global.message(), HasSubstr("the global variable \"" + name + "\""));
  }
}

TEST(Validate, AMessageAboutANameOfAnyBytesCanBeShown) {
  const auto error = refusal_of({.user = {{"a\xff", {"1"}}}});
  EXPECT_EQ(error.field("key"), "a?");
  EXPECT_THAT(error.message(), HasSubstr("\"a?\""));
}

TEST(Validate, AValueThatIsNotJsonIsRefused) {
  for (const std::string text : {"10.0.0.7", "", "{", "1 2", "'x'"}) {
    const auto error = refusal_of({.user = {{"IP", {text}}}});
    EXPECT_EQ(error.code(), Code::spec_invalid) << text;
    EXPECT_EQ(error.field("key"), "IP");
    EXPECT_THAT(error.message(), HasSubstr("the user variable \"IP\" has a value that is not JSON"));
    EXPECT_THAT(error.message(), HasSubstr("quotation marks"));
  }
  EXPECT_EQ(refusal_of({.global = {{"site", {"north"}}}}).field("key"), "global.site");
}

TEST(Validate, AValueMayBeNestedSoDeeplyThatASpecificationOfItCanBeStored) {
  const pawl::ChildSpec deepest{.user_spec = {.variables = {.user = {{"x", {nested(16)}}}}}};
  EXPECT_TRUE(validate(deepest.user_spec.variables));
  EXPECT_TRUE(encode(std::vector{deepest}));
  const auto error = refusal_of({.user = {{"x", {nested(17)}}}});
  EXPECT_EQ(error.code(), Code::spec_invalid);
  EXPECT_THAT(error.message(), HasSubstr("16 levels"));
}

TEST(StoredVariables, AreTheUsersAndTheTreesAndNothingElse) {
  const Variables variables{.user = {{"PORT", {"1883"}}}, .global = {{"site", {"\"north\""}}}};
  const pawl::InternalVariables internal{.id = "pump-1", .parent_id = "root"};
  ASSERT_EQ(rendered_with("{{ .internal.id }}", variables, internal), "pump-1");
  EXPECT_EQ(encode(variables).value(), R"({"user":{"PORT":1883},"global":{"site":"north"}})");
}

TEST(StoredVariables, InternalOnesThatSomebodyWroteAreNotTaken) {
  const auto read = decode<Variables>(R"({"user":{"a":1},"internal":{"id":"forged"}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read).value(), R"({"user":{"a":1},"global":{}})");
  EXPECT_EQ(rendered_with("{{ .internal.id }}", *read, {.id = "real"}), "real");
}

TEST(StoredVariables, ComeBackAsTheyWere) {
  const Variables variables{
      .user = {{"list", {"[1,2.5,null]"}}, {"plc", {R"({"port":502})"}}, {"text", {R"("a\"b")"}}},
      .global = {{"big", {"18446744073709551615"}}, {"on", {"true"}}}};
  const auto text = encode(variables);
  ASSERT_TRUE(text);
  const auto read = decode<Variables>(*text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->user, variables.user);
  EXPECT_EQ(read->global, variables.global);
}

TEST(StoredVariables, RenderTheSameBeforeAndAfter) {
  const Variables variables{.user = {{"n", {"1.50e1"}}, {"o", {R"({ "a" : 1.0 })"}}}};
  const auto read = decode<Variables>(encode(variables).value());
  ASSERT_TRUE(read);
  EXPECT_EQ(rendered_with("{{ .n }} {{ .o }}", variables), R"(15.0 {"a":1.0})");
  EXPECT_EQ(rendered_with("{{ .n }} {{ .o }}", *read), R"(15.0 {"a":1.0})");
}

TEST(StoredVariables, EmptyAndAbsentMapsAreEmpty) {
  for (const auto* text : {"{}", R"({"user":{}})", R"({"user":{},"global":{}})"}) {
    const auto read = decode<Variables>(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(encode(*read).value(), R"({"user":{},"global":{}})");
  }
}

TEST(StoredVariables, ANullInsteadOfAMapIsRefusedByItsPath) {
  const auto read = decode<Variables>(R"({"user":null})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::wrong_type);
  EXPECT_EQ(read.error().field("path"), "$.user");
}

TEST(NearestName, OneChangeIsNearForUpToFourCharacters) {
  EXPECT_EQ(nearest_name("PORD", {"PORT"}), "PORT");  // changed
  EXPECT_EQ(nearest_name("POR", {"PORT"}), "PORT");   // added
  EXPECT_EQ(nearest_name("IPP", {"IP"}), "IP");       // removed
  EXPECT_EQ(nearest_name("PROT", {"PORT"}), "PORT");  // swapped
  EXPECT_EQ(nearest_name("PRET", {"PORT"}), "");      // two changes
}

TEST(NearestName, TwoAreNearForUpToEight) {
  EXPECT_EQ(nearest_name("clustir", {"cluster"}), "cluster");
  EXPECT_EQ(nearest_name("klustir", {"cluster"}), "cluster");
  EXPECT_EQ(nearest_name("klustir", {"clusters"}), "");
  EXPECT_EQ(nearest_name("abcdefXY", {"abcdefgh"}), "abcdefgh");
  EXPECT_EQ(nearest_name("abcdeXYZ", {"abcdefgh"}), "");
}

TEST(NearestName, ThreeAreNearForLongerOnes) {
  EXPECT_EQ(nearest_name("abcdefXYZ", {"abcdefghi"}), "abcdefghi");
  EXPECT_EQ(nearest_name("abcdeWXYZ", {"abcdefghi"}), "");
}

TEST(NearestName, LettersMayComeBetweenTwoThatWereSwapped) {
  EXPECT_EQ(nearest_name("lineca", {"lineabc"}), "lineabc");
  EXPECT_EQ(nearest_name("lineabc", {"lineca"}), "lineca");
}

TEST(NearestName, TheSameInOtherLettersIsNearest) {
  EXPECT_EQ(nearest_name("port", {"sort", "PORT"}), "PORT");
  EXPECT_EQ(nearest_name("DeviceId", {"device_id", "deviceID"}), "deviceID");
}

TEST(NearestName, TheLetterCaseIsNoChange) { EXPECT_EQ(nearest_name("prot", {"PORT"}), "PORT"); }

TEST(NearestName, TheNearestWinsAndOfEqualsTheFirst) {
  EXPECT_EQ(nearest_name("cluste", {"clusters", "cluster"}), "cluster");
  EXPECT_EQ(nearest_name("porx", {"pory", "porz"}), "pory");
  EXPECT_EQ(nearest_name("porx", {"porz", "pory"}), "porz");
}

TEST(NearestName, WhereNothingIsKnownOrWrittenNothingIsNear) {
  EXPECT_EQ(nearest_name("IP", {}), "");
  EXPECT_EQ(nearest_name("", {"a", ""}), "");
  EXPECT_EQ(nearest_name("address", {"IP", "PORT"}), "");
}

TEST(NearestName, LongNamesAreComparedAsWholesOnly) {
  const std::string longest(64, 'a');
  EXPECT_EQ(nearest_name(longest.substr(1), {longest}), longest);
  const std::string longer(65, 'a');
  EXPECT_EQ(nearest_name(longer.substr(1), {longer}), "");
  EXPECT_EQ(nearest_name(std::string(65, 'A'), {longer}), longer);
}

}  // namespace
