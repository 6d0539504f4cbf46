// SPDX-License-Identifier: Apache-2.0
#include "workers/config/template_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "kernel/utf8.hpp"
#include "supervise/marked.hpp"
#include "workers/config/yaml.hpp"

namespace pawl::workers {
namespace {

std::size_t number_in_field(const Error& error, std::string_view field) {
  const auto text = error.field(field);
  std::size_t number = 1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The offset of a line and a column, in characters.
std::size_t offset_of(std::string_view text, std::size_t line, std::size_t column) {
  std::size_t at = 0;
  for (; line > 1; --line) {
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    at = end + 1;
  }
  for (; column > 1 && at < text.size(); --column) {
    ++at;
    // Skip continuation bytes of UTF-8.
    while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
  }
  return at;
}

/// The expression that begins at the offset, up to the end of its line.
std::string expression_at(std::string_view text, std::size_t at) {
  constexpr std::string_view kClosing = "}}";
  text.remove_prefix(std::min(at, text.size()));
  text = text.substr(0, text.find('\n'));
  const auto end = text.find(kClosing);
  return shown(end == std::string_view::npos ? text : text.substr(0, end + kClosing.size()));
}

TemplateProblem describe_missing(const Error& error) {
  TemplateProblem problem{.problem = fmt::format("there is no variable .{}", shown(error.field("key"))),
                          .expected = "a variable, of which there are none here"};
  if (const auto known = error.field("known"); !known.empty()) {
    problem.expected = fmt::format("one of {}", known);
  }
  if (const auto nearest = error.field("nearest"); !nearest.empty()) {
    problem.suggestion = fmt::format("{{{{ .{} }}}}", nearest);
  }
  return problem;
}

TemplateProblem describe_other(const Error& error) {
  std::string_view message = error.message();
  // Drop the position in the text: the problem has the position in the file.
  const auto place = fmt::format("line {}, column {}: ", error.field("line"), error.field("column"));
  if (message.starts_with(place)) message.remove_prefix(place.size());
  return {.problem = std::string(message), .expected = "{{ .NAME }}, or a text in quotation marks"};
}

}  // namespace

std::vector<TemplateProblem> check_template(std::string_view text, const Variables& variables,
                                            const std::vector<std::string>& templates) {
  constexpr std::size_t kMostProblems = 20;
  const supervise::MarkedTemplate config(text, variables, {});
  supervise::MarkedTemplate::Indices others;
  if (!templates.empty()) {
    if (const auto read = read_yaml(config.text())) others = config.elsewhere(read->json, templates);
  }
  std::vector<TemplateProblem> problems;
  const auto add = [&](const Error& error, TemplateProblem problem) {
    const auto line = number_in_field(error, "line");
    problem.line = static_cast<int>(line);
    problem.actual = expression_at(text, offset_of(text, line, number_in_field(error, "column")));
    problems.push_back(std::move(problem));
  };
  for (std::size_t i = 0; i < config.expressions().size(); ++i) {
    const auto& one = config.expressions()[i];
    const auto& error = others.contains(i) ? one.quoted_variable : one.error;
    if (!error) continue;
    if (problems.size() == kMostProblems) return problems;
    const bool missing = error->code() == Code::variable_missing;
    add(*error, missing ? describe_missing(*error) : describe_other(*error));
  }
  if (config.mistake()) add(*config.mistake(), describe_other(*config.mistake()));
  return problems;
}

}  // namespace pawl::workers
