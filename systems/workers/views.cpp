// SPDX-License-Identifier: Apache-2.0
#include "workers/views.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pawl/json.hpp"
#include "pawl/names.hpp"
#include "workers/secrets.hpp"

namespace pawl::workers {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The length in bytes of the character at the start of the text; 0 if it is not valid UTF-8.
std::size_t character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const auto length = character(text);
    made += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return made;
}

NodeView view_worker(const WorkerView& worker) {
  NodeView made{.path = worker.identity.path,
                .name = worker.identity.name,
                .type = worker.identity.type,
                .parent = worker.identity.parent,
                .state = worker.state,
                .phase = std::string(enum_name(worker.phase)),
                .reason = as_utf8(worker.reason),
                .health = std::string(enum_name(worker.health)),
                .problem = as_utf8(worker.problem),
                .intent = std::string(enum_name(worker.intent)),
                .in_state_seconds = seconds(worker.in_state),
                .action = worker.action,
                .failures = worker.failures,
                .restarting = worker.restarting,
                .incarnation = worker.incarnation,
                .transitions = worker.transitions,
                .children = worker.children,
                .children_healthy = worker.children_healthy};
  // The parent of a worker at the top is internal.
  if (made.path == made.name) made.parent.clear();
  if (worker.observed_ago) made.observed_seconds_ago = seconds(*worker.observed_ago);
  if (worker.next_try) made.next_try_seconds = seconds(*worker.next_try);
  return made;
}

NodeDetail view_detail(const WorkerView& worker, const RecentHistory& history) {
  return {.worker = view_worker(worker),
          .desired_version = worker.desired_version,
          .desired = worker.desired,
          .observed = worker.observed,
          .config = worker.spec.config,
          .user_variables = worker.spec.variables.user,
          .global_variables = worker.spec.variables.global,
          .child_paths = worker.child_paths,
          .collector_restarts = worker.collector_restarts,
          .has_logs = worker.identity.type == "process",
          .history = history.events};
}

void hide_secrets(NodeView& worker, const Secrets& secrets, const RecentHistory& history) {
  const auto hide = [&](std::string& text, bool is_current) {
    text = is_current || text.empty() ? secrets.hide(text) : std::string(kHidden);
  };
  hide(worker.reason, history.is_reason_current);
  // The error of a configuration quotes it.
  hide(worker.problem, history.is_problem_current && worker.health != enum_name(Health::config_error));
}

void hide_secrets(NodeDetail& detail, const Secrets& secrets, const RecentHistory& history) {
  hide_secrets(detail.worker, secrets, history);
  const auto hidden = encode(std::string(kHidden)).value_or("null");
  if (!detail.desired.text.empty()) detail.desired.text = secrets.hide_desired(detail.desired.text);
  if (!detail.observed.text.empty()) {
    detail.observed.text = history.is_observed_current ? secrets.hide_json(detail.observed.text) : hidden;
  }
  detail.config = secrets.hide_config(detail.config);
  for (auto& event : detail.history) {
    const bool is_current = event.desired_version == detail.desired_version;
    for (auto* text : {&event.reason, &event.error}) {
      if (!text->empty()) *text = is_current ? secrets.hide(*text) : std::string(kHidden);
    }
  }
  for (auto* variables : {&detail.user_variables, &detail.global_variables}) {
    for (auto& [_, value] : *variables) value.text = hidden;
  }
}

void hide_secrets(ProblemView& problem) {
  problem.problem = std::string(kHidden);
  problem.actual.clear();
  problem.suggestion.clear();
  problem.text = fmt::format("{}:{}: {}: {}", problem.file, problem.line, problem.key, kHidden);
}

ProblemView view_problem(const ConfigProblem& problem) {
  return {.file = as_utf8(problem.file),
          .line = problem.line,
          .key = as_utf8(problem.key),
          .problem = as_utf8(problem.problem),
          .expected = as_utf8(problem.expected),
          .actual = as_utf8(problem.actual),
          .suggestion = as_utf8(problem.suggestion),
          .text = as_utf8(describe(problem))};
}

DiffView view_diff(const TreeDiff& diff, std::int64_t version) {
  DiffView made{.version = version, .differs = !diff.empty(), .text = as_utf8(to_text(diff))};
  for (const auto& variable : diff.variables) made.changes.push_back({"variable", variable.name});
  for (const auto& child : diff.removed) made.changes.push_back({"removed", child.name});
  for (const auto& child : diff.added) made.changes.push_back({"added", child.name});
  for (const auto& child : diff.changed) made.changes.push_back({"changed", child.name});
  return made;
}

LogView view_log(const std::vector<LogLine>& lines) {
  LogView made;
  for (const auto& line : lines)
    made.lines.push_back({pawl::to_string(line.at), line.error, line.cut, as_utf8(line.text)});
  return made;
}

}  // namespace pawl::workers
