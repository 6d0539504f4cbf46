// SPDX-License-Identifier: Apache-2.0
#include "workers/verbs.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "pawl/codec.hpp"
#include "pawl/json.hpp"
#include "workers/config/yaml.hpp"
#include "workers/scenario.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

using http::Method;

constexpr int kGood = 0;
constexpr int kBad = 1;
constexpr int kDiffers = 1;  // as diff does; docs/cli.md

std::string worker_target(const VerbCall& call, std::string_view more = "") {
  return fmt::format("/v1/workers/{}{}", http::encode_percent(call.argument("path")), more);
}

/// 75 as "1m".
std::string age_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f}s", seconds);
  if (seconds < 3600) return fmt::format("{:.0f}m", seconds / 60);
  if (seconds < 86400) return fmt::format("{:.0f}h", seconds / 3600);
  return fmt::format("{:.0f}d", seconds / 86400);
}

/// The health and what is unusual, in a few words.
std::string health_text(const NodeView& worker) {
  std::string text = worker.health;
  if (worker.intent == "park") text += ", parked";
  if (worker.intent == "remove") text += ", being removed";
  if (worker.restarting) text += ", restarting";
  if (worker.failures > 0) text += fmt::format(", {} failures", worker.failures);
  return text;
}

/// The tree lines in front of each worker's name: ├─ and └─, and │ if a sibling follows.
std::vector<std::string> branches(const std::vector<NodeView>& workers) {
  std::map<std::string, std::size_t, std::less<>> last;  // the last child of each parent
  for (std::size_t i = 0; i < workers.size(); ++i) last[workers[i].parent] = i;
  std::map<std::string, std::string, std::less<>> below;  // prefix of the children of each worker
  std::vector<std::string> made;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto& worker = workers[i];
    if (worker.parent.empty()) {
      made.emplace_back();
      below[worker.path] = "";
      continue;
    }
    const bool ends = last[worker.parent] == i;
    made.push_back(below[worker.parent] + (ends ? "└─ " : "├─ "));
    below[worker.path] = below[worker.parent] + (ends ? "   " : "│  ");
  }
  return made;
}

void print_problems(const std::vector<ProblemView>& problems) {
  for (const auto& problem : problems) fmt::print(stderr, "pawl: {}\n", problem.text);
}

Result<int> show_tree(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::get, "/v1/workers", {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kGood;
  }
  PAWL_TRY(const auto list, decode<NodeList>(answer));
  const auto before = branches(list.workers);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < list.workers.size(); ++i) {
    const auto& worker = list.workers[i];
    rows.push_back({before[i] + worker.name, worker.type, worker.state, age_text(worker.in_state_seconds),
                    health_text(worker), worker.reason});
  }
  call.table({"WORKER", "TYPE", "STATE", ">AGE", "HEALTH", "REASON"}, rows);
  if (rows.empty()) fmt::print(stderr, "pawl: no workers; create them with `pawl workers apply FILE`\n");
  if (list.total > list.workers.size()) {
    fmt::print(stderr, "pawl: showing {} of {} workers\n", list.workers.size(), list.total);
  }
  print_problems(list.problems);
  return kGood;
}

void print_detail(const VerbCall& call, const NodeDetail& detail) {
  const auto& worker = detail.worker;
  std::vector<std::vector<std::string>> facts{
      {"worker", worker.path},
      {"type", worker.type},
      {"state", fmt::format("{} ({}) for {}", worker.state, worker.phase, age_text(worker.in_state_seconds))},
      {"reason", worker.reason},
      {"health", health_text(worker)},
      {"wanted", worker.intent},
      {"desired", detail.desired.text},
      {"observed", detail.observed.text}};
  if (!worker.problem.empty()) facts.push_back({"problem", worker.problem});
  if (worker.observed_seconds_ago)
    facts.push_back({"observed", age_text(*worker.observed_seconds_ago) + " ago"});
  if (!worker.action.empty()) facts.push_back({"action", worker.action});
  if (worker.next_try_seconds) facts.push_back({"next try", "in " + age_text(*worker.next_try_seconds)});
  facts.push_back({"instance", fmt::format("number {}, {} transitions since the server started",
                                           worker.incarnation, worker.transitions)});
  if (worker.children > 0) {
    facts.push_back({"children", fmt::format("{} of {} healthy", worker.children_healthy, worker.children)});
  }
  call.table({"WHAT", ""}, facts);
  std::vector<std::vector<std::string>> rows;
  for (const auto& event : detail.history) {
    const auto what = event.action.empty() ? event.event : fmt::format("{} {}", event.event, event.action);
    rows.push_back({event.at, what, event.state, event.error.empty() ? event.reason : event.error});
  }
  fmt::print("\n");
  call.table({"WHEN", "WHAT", "STATE", "WHY"}, rows);
}

Result<int> show_worker(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::get, worker_target(call), {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kGood;
  }
  PAWL_TRY(const auto detail, decode<NodeDetail>(answer));
  print_detail(call, detail);
  return kGood;
}

Result<int> ask_for(const VerbCall& call, std::string_view what, std::string body) {
  PAWL_TRY(const auto answer, call.ask(Method::post, worker_target(call, what), std::move(body)));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kGood;
  }
  PAWL_TRY(const auto worker, decode<NodeView>(answer));
  fmt::print("{} is {}: {}\n", worker.path, worker.state, worker.reason);
  return kGood;
}

Result<int> ask_restart(const VerbCall& call) {
  JsonWriter out;
  out.begin_object();
  if (call.arguments.contains("reason")) out.key("reason").string(call.argument("reason"));
  PAWL_TRY(auto body, out.end_object().take());
  return ask_for(call, "/restart", std::move(body));
}

Result<int> ask_remove(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::remove, worker_target(call), {}));
  if (call.json) {
    fmt::print("{}\n", answer);
  } else {
    fmt::print("{} is being removed\n", call.argument("path"));
  }
  return kGood;
}

Result<std::string> read_local(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(YamlLimits::kBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) return fail(Code::invalid_argument, fmt::format("cannot read {}", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// The request body with the text of the file.
Result<std::string> tree_body(const VerbCall& call) {
  const auto path = call.argument("file");
  PAWL_TRY(const auto text, read_local(path));
  JsonWriter out;
  out.begin_object().key("yaml").string(text).key("file").string(path);
  if (call.arguments.contains("expected-version")) {
    char* end = nullptr;
    const auto given = call.argument("expected-version");
    const auto version = std::strtoll(given.c_str(), &end, 10);
    if (given.empty() || *end != '\0') {
      return fail(
          Code::invalid_argument,
          fmt::format("--expected-version {}: expected a number, which `pawl workers tree --json` shows",
                      given));
    }
    out.key("expected_version").integer(std::int64_t{version});
  }
  return out.end_object().take();
}

/// Prints the mistakes of a file one by one, as a compiler does.
Result<std::string> ask_with_file(const VerbCall& call, Method method, std::string target) {
  PAWL_TRY(auto body, tree_body(call));
  auto answer = call.ask(method, std::move(target), std::move(body));
  if (!answer && !answer.error().field("problems").empty()) {
    fmt::print(stderr, "{}\n", answer.error().message());
    return std::string();
  }
  return answer;
}

Result<int> apply_file(const VerbCall& call) {
  PAWL_TRY(const auto answer, ask_with_file(call, Method::put, "/v1/worker-tree"));
  if (answer.empty()) return kBad;
  if (call.json) {
    fmt::print("{}\n", answer);
    return kGood;
  }
  PAWL_TRY(const auto applied, decode<AppliedView>(answer));
  fmt::print("{}{} version {}\n", applied.text, applied.changed ? "applied as" : "no changes;",
             applied.version);
  return kGood;
}

Result<int> diff_file(const VerbCall& call) {
  PAWL_TRY(const auto answer, ask_with_file(call, Method::post, "/v1/worker-tree/diff"));
  if (answer.empty()) return 2;
  PAWL_TRY(const auto found, decode<DiffView>(answer));
  fmt::print("{}{}", call.json ? answer : found.text, call.json ? "\n" : "");
  return found.differs ? kDiffers : kGood;
}

Result<int> show_logs(const VerbCall& call) {
  const auto lines = call.argument("lines");
  const auto query = lines.empty() ? std::string("/logs") : "/logs?lines=" + http::encode_percent(lines);
  PAWL_TRY(const auto answer, call.ask(Method::get, worker_target(call, query), {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kGood;
  }
  PAWL_TRY(const auto log, decode<LogView>(answer));
  std::vector<std::vector<std::string>> rows;
  rows.reserve(log.lines.size());
  for (const auto& line : log.lines) {
    rows.push_back({line.at, line.error ? "err" : "out", line.text + (line.cut ? " …" : "")});
  }
  call.table({"WHEN", "", "LINE"}, rows);
  return kGood;
}

Result<int> play_named(const VerbCall& call) {
  PAWL_TRY(const auto played,
           play_scenario(call.argument("name"), [](const std::string& line) { fmt::print("{}\n", line); }));
  return played ? kGood : kBad;
}

}  // namespace

std::vector<Verb> worker_verbs() {
  const VerbArgument path{
      .name = "path", .description = "the worker's path, such as plant/child-0", .required = true};
  const VerbArgument file{.name = "file", .description = "a YAML file with the workers", .required = true};
  return {
      {.name = "tree", .summary = "Show the worker tree", .run = show_tree},
      {.name = "show", .summary = "Show a worker and its history", .arguments = {path}, .run = show_worker},
      {.name = "park",
       .summary = "Park a worker: stop it and keep it stopped",
       .arguments = {path},
       .run = [](const VerbCall& call) { return ask_for(call, "/park", "{}"); }},
      {.name = "run",
       .summary = "Run a parked worker again",
       .arguments = {path},
       .run = [](const VerbCall& call) { return ask_for(call, "/run", "{}"); }},
      {.name = "restart",
       .summary = "Stop a worker and start a new instance",
       .arguments = {path, {.name = "--reason", .description = "reason, shown in the history"}},
       .run = ask_restart},
      {.name = "remove",
       .summary = "Remove a top-level worker and its children",
       .arguments = {path},
       .run = ask_remove},
      {.name = "apply",
       .summary = "Replace the worker tree with a file; refused if the file has any mistake",
       .arguments = {file,
                     {.name = "--expected-version",
                      .description = "refuse if the tree has changed since this version"}},
       .run = apply_file},
      {.name = "diff",
       .summary = "Show what applying a file would change; exits with 1 if there are changes",
       .arguments = {file},
       .run = diff_file},
      {.name = "logs",
       .summary = "Show the last lines of a process's output",
       .arguments = {path, {.name = "--lines", .description = "number of lines; default: 100"}},
       .run = show_logs},
      {.name = "scenario",
       .summary = "Play an example in virtual time: " + scenario_names(),
       .arguments = {{.name = "name", .description = "name of the scenario", .required = true}},
       .local = true,
       .run = play_named},
  };
}

}  // namespace pawl::workers
