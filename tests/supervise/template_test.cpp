// SPDX-License-Identifier: Apache-2.0
// Templates: what stands for an expression, what is refused and where, and what is never done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pawl/worker_spec.hpp"

namespace {

using pawl::Code;
using pawl::InternalVariables;
using pawl::render;
using pawl::Variables;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kLimit = std::size_t{1} << 20;

const Variables& example() {
  static const Variables variables{.user = {{"IP", {"\"10.0.0.7\""}},
                                            {"PORT", {"1883"}},
                                            {"empty", {"\"\""}},
                                            {"list", {"[1, \"a\"]"}},
                                            {"off", {"false"}},
                                            {"nothing", {"null"}},
                                            {"plc", {R"({"host": "h", "port": 502, "a": {"b": {"c": 7}}})"}},
                                            {"ratio", {"0.5"}}},
                                   .global = {{"site", {"\"north\""}}, {"mqtt", {R"({"port":1883})"}}}};
  return variables;
}

const InternalVariables& example_internal() {
  static const InternalVariables internal{.id = "pump-1",
                                          .parent_id = "root",
                                          .created_at = pawl::Time(pawl::Duration(1'000'000)),
                                          .timestamp = pawl::Time(pawl::Duration(2'500'000))};
  return internal;
}

/// The rendered text, or the error's.
std::string rendered(std::string_view text, const Variables& variables = example()) {
  const auto result = render(text, variables, example_internal());
  return result ? *result : result.error().to_string();
}

/// The error of a template that must be refused.
pawl::Error refusal(std::string_view text, const Variables& variables = example()) {
  const auto result = render(text, variables, example_internal());
  return result ? pawl::Error(Code::invalid_argument, "it was rendered to " + *result) : result.error();
}

/// The error of a template that is not one; the message says this and what would be right.
void expect_invalid(std::string_view text, std::string_view why) {
  const auto error = refusal(text);
  EXPECT_EQ(error.code(), Code::template_invalid) << text;
  EXPECT_THAT(error.message(), HasSubstr(std::string(why))) << text;
  EXPECT_THAT(error.message(), HasSubstr("write ")) << text;
  EXPECT_EQ(error.field("line"), "1") << text;
  EXPECT_EQ(error.field("column"), "1") << text;
}

TEST(Template, TheExampleOfTheHeader) {
  EXPECT_EQ(rendered("url: tcp://{{ .IP }}:{{ .PORT }}"), "url: tcp://10.0.0.7:1883");
  EXPECT_EQ(rendered("{{ .IP }} of {{ .global.site }}"), "10.0.0.7 of north");
}

TEST(Template, AnEmptyTemplateIsAnEmptyText) { EXPECT_EQ(rendered(""), ""); }

TEST(Template, AStringStandsAsItIsAndOtherValuesAsJson) {
  EXPECT_EQ(rendered("{{ .IP }}|{{ .empty }}|{{ .PORT }}|{{ .ratio }}|{{ .off }}|{{ .nothing }}|{{ .list }}"),
            "10.0.0.7||1883|0.5|false|null|[1,\"a\"]");
}

TEST(Template, SpecialCharactersOfAStringAreNotEscaped) {
  const Variables variables{.user = {{"x", {R"("\"<&>' \n\\ é €")"}}}};
  EXPECT_EQ(rendered("[{{ .x }}]", variables), "[\"<&>' \n\\ é €]");
}

TEST(Template, ANumberKeepsAllItsDigits) {
  const Variables variables{
      .user = {{"least", {"-9223372036854775808"}}, {"most", {"18446744073709551615"}}}};
  EXPECT_EQ(rendered("{{ .least }} {{ .most }}", variables), "-9223372036854775808 18446744073709551615");
}

TEST(Template, NestedValuesAreReachedByTheirPath) {
  EXPECT_EQ(rendered("{{ .plc.host }}:{{ .plc.port }}/{{ .plc.a.b.c }}"), "h:502/7");
  EXPECT_EQ(rendered("{{ .global.mqtt.port }}"), "1883");
}

TEST(Template, AnObjectStandsAsCompactJson) {
  EXPECT_EQ(rendered("{{ .plc.a }}"), R"({"b":{"c":7}})");
  EXPECT_EQ(rendered("{{ .plc }}"), R"({"host":"h","port":502,"a":{"b":{"c":7}}})");
}

TEST(Template, InternalVariablesAreThoseOfTheRunningProgram) {
  EXPECT_EQ(rendered("{{ .internal.id }} {{ .internal.parent_id }} {{ .internal.bridged_by }}"),
            "pump-1 root root");
  EXPECT_EQ(rendered("{{ .internal.created_at }} {{ .internal.timestamp }}"),
            "1970-01-01T00:00:01.000000Z 1970-01-01T00:00:02.500000Z");
}

TEST(Template, TheRootHasAnEmptyParent) {
  EXPECT_EQ(render("[{{ .internal.parent_id }}{{ .internal.bridged_by }}]", {}, {.id = "root"}).value(),
            "[]");
}

TEST(Template, AUserVariableDoesNotHideANamespace) {
  const Variables variables{
      .user = {{"global", {R"({"site":"wrong"})"}}, {"internal", {R"({"id":"wrong"})"}}},
      .global = {{"site", {"\"right\""}}}};
  EXPECT_EQ(rendered("{{ .global.site }} {{ .internal.id }}", variables), "right pump-1");
}

TEST(Template, BlanksAroundAnExpressionAreOptional) {
  EXPECT_EQ(rendered("{{.IP}} {{ \t.IP\t }} {{.IP }} {{\"x\"}} {{  \"x\"}}"),
            "10.0.0.7 10.0.0.7 10.0.0.7 x x");
}

TEST(Template, ExpressionsMayTouchEachOtherAndBraces) {
  EXPECT_EQ(rendered("{{ .PORT }}{{ .PORT }}"), "18831883");
  EXPECT_EQ(rendered("{ {{ .PORT }}} }} {"), "{ 1883} }} {");
}

TEST(Template, JsonWithoutTwoOpeningBracesIsOrdinaryText) {
  const std::string json = R"({"a":{"b":{"c":[{}]}}})";
  EXPECT_EQ(rendered(json), json);
}

TEST(Template, AQuotedTextStandsForItself) {
  EXPECT_EQ(rendered(R"({{ "{{" }} .IP {{ "}}" }})"), "{{ .IP }}");
  EXPECT_EQ(rendered(R"({{ "" }}[{{ "{{ .IP }}" }}])"), "[{{ .IP }}]");
}

TEST(Template, AQuotedTextHasFourEscapes) {
  EXPECT_EQ(rendered(R"({{ "\"\\\n\t" }})"), "\"\\\n\t");
  for (const auto* text : {R"({{ "\r" }})", R"({{ "\u0041" }})", R"({{ "\'" }})", R"({{ "\)"})
    expect_invalid(text, "is not an escape of a quoted text");
}

TEST(Template, BytesThatAreNotUtf8PassOutsideOfExpressions) {
  EXPECT_EQ(rendered("\xff\xc3{{ .PORT }}\x80"),
            "\xff\xc3"
            "1883\x80");
  EXPECT_EQ(rendered(std::string_view("\0{{ \"\xff\" }}\0", 11)), std::string_view("\0\xff\0", 3));
}

TEST(Template, AValueIsNotRenderedAgain) {
  const Variables variables{
      .user = {{"a", {R"("{{ .b }}")"}}, {"b", {R"("{{ .a }}")"}}, {"open", {"\"{{\""}}}};
  EXPECT_EQ(rendered("{{ .a }} {{ .b }}", variables), "{{ .b }} {{ .a }}");
  EXPECT_EQ(rendered("{{ .open }} .a }}", variables), "{{ .a }}");
  EXPECT_EQ(rendered("{{ .brace }}{ .a }}", Variables{.user = {{"brace", {"\"{\""}}}}), "{{ .a }}");
}

RC_GTEST_PROP(Template, TextWithoutTwoOpeningBracesIsLeftAsItIs, (std::vector<char> bytes)) {
  std::string text(bytes.begin(), bytes.end());
  for (auto at = text.find("{{"); at != std::string::npos; at = text.find("{{")) text.erase(at, 1);
  RC_ASSERT(rendered(text) == text);
}

RC_GTEST_PROP(Template, EveryTextCanBeQuoted, (const std::string& bytes)) {
  std::string quoted;
  for (const char c : bytes) {
    if (c == '\r') continue;  // has no escape and ends a line
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  }
  std::string plain = bytes;
  std::erase(plain, '\r');
  RC_ASSERT(rendered("<{{ \"" + quoted + "\" }}>") == "<" + plain + ">");
}

RC_GTEST_PROP(Template, EveryStringValueStandsAsItIsEvenIfItLooksLikeATemplate, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("{{", "}}", " ", ".", "IP", "x", "\"", "\\", "\n"));
  std::string value;
  for (const auto& piece : pieces) value += piece;
  const Variables variables{.user = {{"x", {pawl::encode(value).value()}}, {"IP", {"\"wrong\""}}}};
  RC_ASSERT(rendered("a{{ .x }}b", variables) == "a" + value + "b");
}

TEST(TemplateRefusal, BracesThatAreNotClosed) {
  for (const auto* text :
       {"{{", "{{ ", "{{ .IP", "{{ .IP ", "{{ .IP }", "{{ .IP\n}}", "{{\n.IP }}", "{{ .IP\r\n}}"})
    EXPECT_EQ(refusal(text).code(), Code::template_invalid) << text;
  expect_invalid("{{", "is not closed on its line");
  expect_invalid("{{ .IP", "is not closed on its line");
  expect_invalid("{{ .IP\n}}", "is not closed on its line");
  expect_invalid("{{ \"x\" ", "is not closed on its line");
}

TEST(TemplateRefusal, NothingBetweenTheBraces) {
  expect_invalid("{{}}", "nothing between");
  expect_invalid("{{ \t }}", "nothing between");
}

TEST(TemplateRefusal, AVariableWithoutItsDot) {
  expect_invalid("{{ IP }}", "write {{ .IP }}");
  expect_invalid("{{plc.port}}", "write {{ .plc.port }}");
}

TEST(TemplateRefusal, FunctionsConditionsAndPipes) {
  expect_invalid("{{ if .IP }}", "\"if\" is unknown: templates have no functions, conditions or loops");
  expect_invalid("{{ printf \"%d\" .PORT }}", "\"printf\" is unknown");
  expect_invalid("{{ .IP | upper }}", "\"|\" cannot stand after an expression");
  expect_invalid("{{ .IP .PORT }}", "\".PORT\" cannot stand after an expression");
  expect_invalid("{{ \"a\" \"b\" }}", "cannot stand after an expression");
  expect_invalid("{{ .IP } }}", "\"}\" cannot stand after an expression");
}

TEST(TemplateRefusal, WhatBeginsNoExpression) {
  expect_invalid("{{- .IP }}", "\"-\" cannot begin an expression");
  expect_invalid("{{ 'IP' }}", "\"'IP'\" cannot begin an expression");
  expect_invalid("{{ `IP` }}", "cannot begin an expression");
  expect_invalid("{{ 5 }}", "\"5\" cannot begin an expression");
  expect_invalid("{{{ .IP }}}", "\"{\" cannot begin an expression");
  expect_invalid("{{ /* note */ }}", "cannot begin an expression");
  expect_invalid("{{ \xff }}", "\"?\" cannot begin an expression");
}

TEST(TemplateRefusal, NamesWithOtherCharacters) {
  expect_invalid("{{ . }}", "a dot must be followed by a name");
  expect_invalid("{{ .1st }}", "a dot must be followed by a name");
  expect_invalid("{{ .plc. }}", "a dot must be followed by a name");
  expect_invalid("{{ .plc..port }}", "a dot must be followed by a name");
  expect_invalid("{{ .list.0 }}", "a dot must be followed by a name");
  expect_invalid("{{ ..IP }}", "a dot must be followed by a name");
  expect_invalid("{{ .plc-port }}", "unexpected \"-port\" after .plc");
  expect_invalid("{{ .plc.größe }}", "unexpected \"öße\" after .plc.gr");
  expect_invalid("{{ .IP\xff }}", "unexpected \"?\" after .IP");
}

TEST(TemplateRefusal, AQuotedTextThatIsNotClosed) {
  expect_invalid("{{ \"x }}", "the quoted text is not closed");
  expect_invalid("{{ \"x\ny\" }}", "the quoted text is not closed");
  expect_invalid("{{ \"", "the quoted text is not closed");
}

TEST(TemplateRefusal, AWholeNamespace) {
  expect_invalid("{{ .global }}", "write {{ .global.NAME }} with one of: mqtt, site");
  expect_invalid("{{ .internal }}",
                 "write {{ .internal.NAME }} with one of: bridged_by, created_at, id, parent_id, timestamp");
}

TEST(TemplateRefusal, SyntaxIsLookedAtBeforeTheVariable) {
  EXPECT_EQ(refusal("{{ .missing | upper }}").code(), Code::template_invalid);
}

TEST(TemplateRefusal, SaysTheLineAndColumnOfTheOpeningBraces) {
  const auto error = refusal("a: {{ .IP }}\nbc: {{ .PROT }}\n");
  EXPECT_EQ(error.field("line"), "2");
  EXPECT_EQ(error.field("column"), "5");
  EXPECT_TRUE(error.message().starts_with("line 2, column 5: ")) << error.message();
  const auto invalid = refusal("\n\n  {{ ? }}");
  EXPECT_EQ(invalid.field("line"), "3");
  EXPECT_EQ(invalid.field("column"), "3");
}

TEST(TemplateRefusal, ColumnsAreCharactersRatherThanBytes) {
  EXPECT_EQ(refusal("é€{{").field("column"), "3");
}

TEST(TemplateRefusal, OfAnyBytesCanBeShown) {
  EXPECT_THAT(refusal("{{ \"\\\xc3\" }}").message(), HasSubstr("\"\\?\" is not an escape"));
}

TEST(MissingVariable, NamesWhatIsKnownAndWhatMayBeMeant) {
  const auto error = refusal("{{ .PROT }}");
  EXPECT_EQ(error.code(), Code::variable_missing);
  EXPECT_EQ(error.field("key"), "PROT");
  EXPECT_EQ(error.field("known"), "IP, PORT, empty, list, nothing, off, plc, ratio, global, internal");
  EXPECT_EQ(error.field("nearest"), "PORT");
  EXPECT_EQ(error.field("line"), "1");
  EXPECT_EQ(error.field("column"), "1");
  EXPECT_THAT(error.message(), HasSubstr("there is no variable .PROT; known are: IP, PORT, "));
  EXPECT_THAT(error.message(), HasSubstr("did you mean {{ .PORT }}?"));
}

TEST(MissingVariable, WhereNoneIsNearNoneIsProposed) {
  const auto error = refusal("{{ .temperature }}");
  EXPECT_EQ(error.code(), Code::variable_missing);
  EXPECT_EQ(error.field("nearest"), "");
  EXPECT_THAT(error.message(), Not(HasSubstr("did you mean")));
}

TEST(MissingVariable, ANestedOneIsNamedByItsWholePath) {
  const auto error = refusal("{{ .plc.prt }}");
  EXPECT_EQ(error.code(), Code::variable_missing);
  EXPECT_EQ(error.field("key"), "plc.prt");
  EXPECT_EQ(error.field("known"), "a, host, port");
  EXPECT_EQ(error.field("nearest"), "plc.port");
  EXPECT_THAT(error.message(),
              HasSubstr("there is no variable .plc.prt; in .plc are: a, host, port; did you mean "
                        "{{ .plc.port }}?"));
}

TEST(MissingVariable, WhatIsProposedKeepsTheRestOfThePath) {
  EXPECT_EQ(refusal("{{ .globl.site }}").field("nearest"), "global.site");
  EXPECT_EQ(refusal("{{ .plc.a.d.c }}").field("nearest"), "plc.a.b.c");
}

TEST(MissingVariable, OneOfAnotherNamespaceIsProposedWithIt) {
  EXPECT_EQ(refusal("{{ .site }}").field("nearest"), "global.site");
  EXPECT_EQ(refusal("{{ .id }}").field("nearest"), "internal.id");
}

TEST(MissingVariable, GlobalAndInternalOnesAreMissedInTheirNamespace) {
  const auto global = refusal("{{ .global.sit }}");
  EXPECT_EQ(global.field("key"), "global.sit");
  EXPECT_EQ(global.field("known"), "mqtt, site");
  EXPECT_EQ(global.field("nearest"), "global.site");
  const auto internal = refusal("{{ .internal.parentid }}");
  EXPECT_EQ(internal.code(), Code::variable_missing);
  EXPECT_EQ(internal.field("key"), "internal.parentid");
  EXPECT_EQ(internal.field("known"), "bridged_by, created_at, id, parent_id, timestamp");
  EXPECT_EQ(internal.field("nearest"), "internal.parent_id");
}

TEST(MissingVariable, NothingIsInAValueThatIsNoObject) {
  for (const auto* text :
       {"{{ .IP.port }}", "{{ .list.first }}", "{{ .plc.port.x }}", "{{ .internal.id.x }}"}) {
    const auto error = refusal(text);
    EXPECT_EQ(error.code(), Code::variable_missing) << text;
    EXPECT_THAT(error.message(), HasSubstr("has no names in it")) << text;
    EXPECT_EQ(error.field("known"), "");
  }
  EXPECT_THAT(refusal("{{ .IP.port }}").message(),
              HasSubstr("there is no variable .IP.port: .IP has no names"));
}

TEST(MissingVariable, WithoutVariablesOnlyTheNamespacesAreKnown) {
  EXPECT_EQ(refusal("{{ .x }}", {}).field("known"), "global, internal");
  EXPECT_THAT(refusal("{{ .global.x }}", {}).message(), HasSubstr(".global has no names in it"));
}

TEST(MissingVariable, ANameThatNoTemplateCanUseIsNotProposed) {
  const auto error = refusal("{{ .o.port1 }}", {.user = {{"o", {R"({"port-1":1})"}}}});
  EXPECT_EQ(error.field("known"), "port-1");
  EXPECT_EQ(error.field("nearest"), "");
}

TEST(MissingVariable, OfManyKnownNamesTheFirstTwentyAreListed) {
  Variables variables;
  for (char c = 'a'; c <= 'z'; ++c) variables.user[std::string(3, c)] = {"1"};
  EXPECT_THAT(refusal("{{ .nowhere }}", variables).message(), HasSubstr("sss, ttt and 8 more"));
}

TEST(MissingVariable, TheFirstOneOfATemplateIsReported) {
  EXPECT_EQ(refusal("{{ .first_missing }} {{ .second_missing }}").field("key"), "first_missing");
}

TEST(UnreadableValue, IsRefusedWhereItIsNeeded) {
  const Variables variables{.user = {{"bad", {"10.0.0.7"}}, {"good", {"1"}}}};
  EXPECT_EQ(rendered("{{ .good }}", variables), "1");
  const auto error = refusal("\n{{ .bad.x }}", variables);
  EXPECT_EQ(error.code(), Code::spec_invalid);
  EXPECT_EQ(error.field("key"), "bad");
  EXPECT_EQ(error.field("line"), "2");
  EXPECT_THAT(error.message(), HasSubstr("the value of .bad is not JSON"));
}

TEST(TemplateLimit, ATemplateOfAMebibyteIsRenderedAndALargerOneIsRefused) {
  const std::string most(kLimit, 'x');
  EXPECT_TRUE(rendered(most) == most);
  const auto error = refusal(most + "x");
  EXPECT_EQ(error.code(), Code::too_large);
  EXPECT_EQ(error.field("limit"), "1048576");
  EXPECT_EQ(error.field("line"), "1");
  EXPECT_EQ(error.field("column"), "1048577");
}

TEST(TemplateLimit, AResultOfAMebibyteIsGivenAndALargerOneIsRefused) {
  const Variables variables{.user = {{"half", {"\"" + std::string(kLimit / 2, 'x') + "\""}}}};
  EXPECT_EQ(rendered("{{ .half }}{{ .half }}", variables).size(), kLimit);
  EXPECT_EQ(rendered("{{ .half }}{{ .half }}{{ \"\" }}", variables).size(), kLimit);
  const auto value = refusal("{{ .half }}\ny{{ .half }}", variables);
  EXPECT_EQ(value.code(), Code::too_large);
  EXPECT_EQ(value.field("line"), "2");
  EXPECT_EQ(value.field("column"), "2");
  const auto literal = refusal("{{ .half }}{{ .half }}\n", variables);
  EXPECT_EQ(literal.code(), Code::too_large);
  EXPECT_EQ(literal.field("column"), "23");
}

TEST(TemplateLimit, AMebibyteOfExpressionsOnALargeObjectTakesTimeInProportion) {
  // A search through all members for each expression would be billions of comparisons.
  std::string object = "{";
  for (int i = 0; object.size() < kLimit - 20; ++i)
    object += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":1";
  object += "}";
  const Variables variables{.user = {{"o", {object}}}};
  std::string text;
  std::size_t count = 0;
  for (; text.size() < kLimit - 20; ++count)
    text += "{{.o.k" + std::to_string(50'000 + count % 10'000) + "}}";
  EXPECT_TRUE(rendered(text, variables) == std::string(count, '1'));
}

TEST(Template, TheSameVariablesMayBeRenderedByManyAtOnce) {
  std::vector<std::string> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results)
      threads.emplace_back([&result] { result = rendered("{{ .plc.port }}{{ .global.mqtt.port }}"); });
  }
  EXPECT_THAT(results, ::testing::Each("5021883"));
}

}  // namespace
