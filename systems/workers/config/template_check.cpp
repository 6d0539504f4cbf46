// SPDX-License-Identifier: Apache-2.0
#include "workers/config/template_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "kernel/utf8.hpp"

namespace pawl::workers {
namespace {

std::size_t number_in_field(const Error& error, std::string_view field) {
  const auto text = error.field(field);
  std::size_t number = 1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Where a line and a column, in characters, are in the text.
std::size_t offset_of(std::string_view text, std::size_t line, std::size_t column) {
  std::size_t at = 0;
  for (; line > 1; --line) {
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    at = end + 1;
  }
  for (; column > 1 && at < text.size(); --column) {
    ++at;
    // A character's further bytes are 10xxxxxx in UTF-8.
    while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
  }
  return at;
}

/// The expression that begins there, as far as it goes on its line.
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
  // The place is that in the file.
  const auto place = fmt::format("line {}, column {}: ", error.field("line"), error.field("column"));
  if (message.starts_with(place)) message.remove_prefix(place.size());
  return {.problem = std::string(message), .expected = "{{ .NAME }}, or a text in quotation marks"};
}

}  // namespace

std::vector<TemplateProblem> check_template(std::string_view text, const Variables& variables) {
  constexpr std::size_t kMostProblems = 20;
  constexpr std::size_t kBraces = 2;
  std::vector<TemplateProblem> problems;
  std::size_t lines_before = 0;
  while (problems.size() < kMostProblems) {
    const auto rendered = render(text, variables, {});
    if (rendered) break;
    const auto& error = rendered.error();
    const bool missing = error.code() == Code::variable_missing;
    const auto line = number_in_field(error, "line");
    auto problem = missing ? describe_missing(error) : describe_other(error);
    problem.line = static_cast<int>(lines_before + line);
    const auto opening = offset_of(text, line, number_in_field(error, "column"));
    problem.actual = expression_at(text, opening);
    problems.push_back(std::move(problem));
    if (!missing) break;
    // On with what follows the expression's opening braces.
    lines_before += line - 1;
    text.remove_prefix(std::min(opening + kBraces, text.size()));
  }
  return problems;
}

}  // namespace pawl::workers
