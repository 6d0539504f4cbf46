// SPDX-License-Identifier: Apache-2.0
#include "workers/config/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::workers {

std::string describe(const ConfigProblem& problem) {
  auto text = fmt::format("{}:{}: ", problem.file, problem.line);
  if (!problem.key.empty()) text += problem.key + ": ";
  text += problem.problem;
  if (!problem.expected.empty()) text += "; expected " + problem.expected;
  if (!problem.actual.empty()) text += (problem.expected.empty() ? "; got " : ", got ") + problem.actual;
  if (!problem.suggestion.empty()) text += fmt::format("; did you mean {}?", problem.suggestion);
  return text;
}

Error to_error(const std::vector<ConfigProblem>& problems) {
  constexpr std::size_t kShown = 100;
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kShown); ++i) {
    if (i > 0) text += '\n';
    text += describe(problems[i]);
  }
  if (problems.size() > kShown) {
    text += fmt::format("\n{}: and {} more", problems[0].file, problems.size() - kShown);
  }
  return {Code::config_invalid,
          std::move(text),
          {{"file", problems[0].file},
           {"line", std::to_string(problems[0].line)},
           {"key", problems[0].key},
           {"problems", std::to_string(problems.size())}}};
}

std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

void ConfigProblems::add(ConfigProblem problem) {
  const int line = line_of(problem.key);
  add_on_line(line, std::move(problem));
}

void ConfigProblems::add_on_line(int line, ConfigProblem problem) {
  if (is_full()) return;
  problem.file = file_;
  problem.line = line;
  // What is written in a file has no "$".
  problem.key.erase(0, problem.key.starts_with("$.") ? 2 : problem.key.starts_with("$") ? 1 : 0);
  found_.push_back(std::move(problem));
}

int ConfigProblems::line_of(std::string_view path) const {
  const auto found = document_.lines.find(path);
  return found == document_.lines.end() ? 1 : found->second;
}

}  // namespace pawl::workers
