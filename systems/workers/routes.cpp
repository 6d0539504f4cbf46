// SPDX-License-Identifier: Apache-2.0
#include "workers/routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "pawl/json.hpp"
#include "supervise/application.hpp"
#include "support/body.hpp"
#include "workers/config/tree.hpp"
#include "workers/partial_tree.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

using http::Method;
using http::Role;
using systems::read_body;

constexpr std::size_t kMostWorkers = 5000;
constexpr std::size_t kEvents = 50;
constexpr std::size_t kEventsInList = 8;
constexpr std::size_t kLines = 100;
constexpr std::size_t kMostLogLines = 10'000;

/// A number in the query string. Error: `invalid_argument`.
Result<std::size_t> number_of(const http::Request& request, std::string_view name, std::size_t default_value,
                              std::size_t most) {
  if (!request.has_parameter(name)) return default_value;
  const auto& text = request.parameter(name);
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value == 0 || value > most) {
    return fail(Code::invalid_argument, fmt::format("{}: expected a number from 1 to {}", name, most));
  }
  return value;
}

Result<RecentHistory> history_of(const WorkersView& view, const WorkerType& type, const WorkerView& worker,
                                 std::size_t limit) {
  return read_recent_history(view.engine, type.machine.name, worker, view.runtime.now(), limit);
}

/// The secrets of the worker, also those of its earlier configurations.
Secrets secrets_of(const WorkerView& worker, const WorkerType& type, const RecentHistory& history) {
  Secrets secrets(worker, type);
  for (const auto& spec : history.earlier) secrets.add(spec);
  return secrets;
}

/// For one worker of many. Errors: those of `Engine::history`.
Result<void> hide_secrets_in(const WorkersView& view, const WorkerView& worker, NodeView& made) {
  PAWL_TRY(const auto type, view.supervisor.types().find(worker.identity.type));
  RecentHistory history;
  // Without an earlier configuration everything is about the present one.
  if (worker.desired_version > 1) {
    PAWL_TRY(history, history_of(view, *type, worker, kEventsInList));
  }
  hide_secrets(made, secrets_of(worker, *type, history), history);
  return {};
}

Result<http::Response> list(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(const auto limit, number_of(request, "limit", kMostWorkers, kMostWorkers));
  PAWL_TRY(const auto applied, view.supervisor.applied());
  NodeList made{.version = applied.second, .file = view.file.path()};
  const bool hides = request.role < Role::operator_;
  for (const auto& problem : view.file.problems()) {
    made.problems.push_back(view_problem(problem));
    if (hides) hide_secrets(made.problems.back());
  }
  const auto tree = view.supervisor.tree();
  made.total = tree.size();
  for (std::size_t i = 0; i < tree.size() && i < limit; ++i) {
    made.workers.push_back(view_worker(tree[i]));
    if (hides) PAWL_CHECK(hide_secrets_in(view, tree[i], made.workers.back()));
  }
  return http::json(encode(made));
}

/// The worker in the path. The top of the tree is internal and not a worker. Error: `unknown_instance`.
Result<WorkerView> find_worker(const WorkersView& view, const http::Request& request) {
  const auto& path = request.parameter("path");
  if (path == supervise::kTopPath) return fail(Code::unknown_instance, fmt::format("no worker \"{}\"", path));
  return view.supervisor.show(path);
}

Result<http::Response> show(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(const auto worker, find_worker(view, request));
  PAWL_TRY(const auto type, view.supervisor.types().find(worker.identity.type));
  PAWL_TRY(const auto history, history_of(view, *type, worker, kEvents));
  auto detail = view_detail(worker, history);
  if (request.role < Role::operator_) hide_secrets(detail, secrets_of(worker, *type, history), history);
  return http::json(encode(detail));
}

Result<http::Response> answer_with(const WorkersView& view, const std::string& path) {
  PAWL_TRY(const auto worker, view.supervisor.show(path));
  return http::json(encode(view_worker(worker)));
}

struct Nothing {};
struct RestartBody {
  std::string reason{};
};

Result<http::Response> park(const WorkersView& view, const http::Request& request) {
  PAWL_CHECK(read_body<Nothing>(request, {}));
  PAWL_CHECK(find_worker(view, request));
  PAWL_CHECK(view.supervisor.park(request.parameter("path")));
  return answer_with(view, request.parameter("path"));
}

Result<http::Response> run(const WorkersView& view, const http::Request& request) {
  PAWL_CHECK(read_body<Nothing>(request, {}));
  PAWL_CHECK(find_worker(view, request));
  PAWL_CHECK(view.supervisor.run(request.parameter("path")));
  return answer_with(view, request.parameter("path"));
}

Result<http::Response> restart(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(auto body, read_body<RestartBody>(request, {"reason"}));
  if (body.reason.empty())
    body.reason = request.user.empty() ? "requested" : fmt::format("requested by {}", request.user);
  PAWL_CHECK(find_worker(view, request));
  PAWL_CHECK(view.supervisor.restart(request.parameter("path"), std::move(body.reason)));
  return answer_with(view, request.parameter("path"));
}

struct VersionView {
  std::int64_t version = 0;
};

Result<http::Response> remove(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(const auto version, view.supervisor.remove(request.parameter("path")));
  return http::json(encode(VersionView{version}));
}

Result<http::Response> logs(const WorkersView& view, const http::Request& request) {
  const auto& path = request.parameter("path");
  PAWL_TRY(const auto count, number_of(request, "lines", kLines, kMostLogLines));
  PAWL_TRY(const auto worker, find_worker(view, request));
  if (worker.identity.type != "process" || view.manager == nullptr) {
    return fail(Code::invalid_argument, fmt::format("\"{}\" is of the type {}: only workers of the type "
                                                    "process have output",
                                                    path, worker.identity.type));
  }
  PAWL_TRY(const auto lines, view.manager->tail(path, count));
  return http::json(encode(view_log(lines)));
}

Result<http::Response> get_tree(const WorkersView& view) {
  PAWL_TRY(const auto applied, view.supervisor.applied());
  return http::json(encode(TreeView{.version = applied.second, .yaml = write_tree(applied.first)}));
}

struct TreeBody {
  Required<std::string> yaml;
  std::string file = "(sent)";  ///< how mistakes name it
  std::optional<std::int64_t> expected_version{};
};

/// A problem response with every mistake in `problems`.
http::Response refusal(const std::vector<ConfigProblem>& problems) {
  auto error = to_error(problems);
  Error refused(Code::spec_invalid, as_utf8(error.message()));
  for (const auto& field : error.fields()) refused.with(field.key, as_utf8(field.value));
  auto response = http::problem(refused);
  JsonWriter out;
  out.begin_array();
  for (const auto& problem : problems) {
    if (const auto text = encode(view_problem(problem))) out.splice(*text);
  }
  out.end_array();
  if (const auto all = out.take(); all && response.body.ends_with('}')) {
    response.body.pop_back();
    response.body += fmt::format(R"(,"problems":{}}})", *all);
  }
  return response;
}

/// The tree in the request, or the response that refuses it with every mistake.
Result<std::pair<std::optional<TreeSpec>, http::Response>> read_sent(const WorkersView& view,
                                                                     const TreeBody& body,
                                                                     const TreeSpec& now) {
  auto part = read_partial_tree(*body.yaml, body.file, view.supervisor.types(), now);
  if (!part.problems.empty()) return std::pair{std::optional<TreeSpec>(), refusal(part.problems)};
  return std::pair{std::move(part.tree), http::Response{}};
}

Result<http::Response> put_tree(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(const auto body, read_body<TreeBody>(request, {"yaml", "file", "expected_version"}));
  PAWL_TRY(const auto applied, view.supervisor.applied());
  PAWL_TRY(auto sent, read_sent(view, body, applied.first));
  if (!sent.first) return std::move(sent.second);
  const auto changes = diff(applied.first, *sent.first);
  // If the caller gives no version, replace the tree that was compared with.
  PAWL_TRY(const auto version,
           view.supervisor.apply(*sent.first, body.expected_version.value_or(applied.second)));
  return http::json(encode(
      AppliedView{.version = version, .changed = !changes.empty(), .text = as_utf8(to_text(changes))}));
}

Result<http::Response> diff_tree(const WorkersView& view, const http::Request& request) {
  PAWL_TRY(const auto body, read_body<TreeBody>(request, {"yaml", "file"}));
  PAWL_TRY(const auto applied, view.supervisor.applied());
  PAWL_TRY(auto sent, read_sent(view, body, applied.first));
  if (!sent.first) return std::move(sent.second);
  return http::json(encode(view_diff(diff(applied.first, *sent.first), applied.second)));
}

constexpr const char* kWorkerSchema =
    R"({"type":"object","required":["path","type","state","phase","reason","health","intent"]})";
constexpr const char* kTreeBody =
    R"({"type":"object","required":["yaml"],"properties":{"yaml":{"type":"string"},"file":{"type":"string"},
    "expected_version":{"type":"integer"}},"additionalProperties":false})";
constexpr const char* kDiffBody =
    R"({"type":"object","required":["yaml"],"properties":{"yaml":{"type":"string"},"file":{"type":"string"}},
    "additionalProperties":false})";
constexpr const char* kNoBody = R"({"type":"object","additionalProperties":false})";

std::vector<http::Route> reading_routes(const WorkersView& view) {
  return {
      {.path = "/v1/workers",
       .id = "workers_list",
       .summary = "List workers, parents before their children, and the mistakes in their file",
       .query = {{.name = "limit",
                  .description = "maximum number of workers",
                  .schema = R"({"type":"integer","minimum":1,"maximum":5000})"}},
       .response = R"({"type":"object","required":["version","file","problems","total","workers"],
           "properties":{"workers":{"type":"array"},"problems":{"type":"array"}}})",
       .run = [view](const http::Request& request) { return list(view, request); }},
      {.path = "/v1/workers/{path}",
       .id = "workers_get",
       .summary = "Get one worker: its desired and observed state, and its history",
       .response = R"({"type":"object","required":["worker","desired_version","config","history"]})",
       .errors = {Code::unknown_instance},
       .run = [view](const http::Request& request) { return show(view, request); }},
      {.path = "/v1/workers/{path}/logs",
       .id = "workers_logs",
       .summary = "Get the last lines of a process's output, oldest first",
       .role = Role::operator_,  // a process may print anything, also its environment
       .query = {{.name = "lines",
                  .description = "number of lines; default: 100",
                  .schema = R"({"type":"integer","minimum":1,"maximum":10000})"}},
       .response = R"({"type":"object","required":["lines"],"properties":{"lines":{"type":"array"}}})",
       .errors = {Code::unknown_instance, Code::invalid_argument, Code::process_failed},
       .run = [view](const http::Request& request) { return logs(view, request); }},
      {.path = "/v1/worker-tree",
       .id = "workers_tree",
       .summary = "Get the tree that was applied last, as YAML, and its version",
       .role = Role::operator_,  // it has the values of environments and headers
       .response = R"({"type":"object","required":["version","yaml"]})",
       .run = [view](const http::Request&) { return get_tree(view); }},
      {.method = Method::post,
       .path = "/v1/worker-tree/diff",
       .id = "workers_diff",
       .summary = "Compare this YAML with the applied tree without applying it",
       .role = Role::operator_,
       .request = kDiffBody,
       .response = R"({"type":"object","required":["version","differs","text","changes"]})",
       .errors = {Code::spec_invalid},
       .audited = false,
       .run = [view](const http::Request& request) { return diff_tree(view, request); }},
  };
}

std::vector<http::Route> changing_routes(const WorkersView& view) {
  return {
      {.method = Method::post,
       .path = "/v1/workers/{path}/park",
       .id = "workers_park",
       .summary = "Park a worker: stop it and keep it stopped",
       .role = Role::operator_,
       .request = kNoBody,
       .response = kWorkerSchema,
       .errors = {Code::unknown_instance},
       .run = [view](const http::Request& request) { return park(view, request); }},
      {.method = Method::post,
       .path = "/v1/workers/{path}/run",
       .id = "workers_run",
       .summary = "Run a parked worker again",
       .role = Role::operator_,
       .request = kNoBody,
       .response = kWorkerSchema,
       .errors = {Code::unknown_instance},
       .runs_programs = true,
       .run = [view](const http::Request& request) { return run(view, request); }},
      {.method = Method::post,
       .path = "/v1/workers/{path}/restart",
       .id = "workers_restart",
       .summary = "Stop a worker and start a new instance",
       .role = Role::operator_,
       .request =
           R"({"type":"object","properties":{"reason":{"type":"string"}},"additionalProperties":false})",
       .response = kWorkerSchema,
       .errors = {Code::unknown_instance},
       .runs_programs = true,
       .run = [view](const http::Request& request) { return restart(view, request); }},
      {.method = Method::remove,
       .path = "/v1/workers/{path}",
       .id = "workers_remove",
       .summary = "Remove a top-level worker and its children",
       .role = Role::operator_,
       .response = R"({"type":"object","required":["version"]})",
       .errors = {Code::unknown_instance, Code::invalid_argument},
       .run = [view](const http::Request& request) { return remove(view, request); }},
      {.method = Method::put,
       .path = "/v1/worker-tree",
       .id = "workers_apply",
       // With this route any program can be run as the server's user.
       .summary = "Replace the tree of workers; refused if it has any mistake",
       .role = Role::admin,
       .request = kTreeBody,
       .response = R"({"type":"object","required":["version","changed","text"]})",
       .errors = {Code::spec_invalid, Code::unknown_worker_type, Code::desired_conflict},
       .runs_programs = true,
       .run = [view](const http::Request& request) { return put_tree(view, request); }},
  };
}

}  // namespace

std::vector<http::Route> worker_routes(const WorkersView& view) {
  auto routes = reading_routes(view);
  auto more = changing_routes(view);
  routes.insert(routes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return routes;
}

}  // namespace pawl::workers
