// SPDX-License-Identifier: Apache-2.0
// pawl runs and pawl run: start, show, wait for and control runs of flows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/run_show.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"
#include "pawl/http.hpp"

namespace pawl::cli {
namespace {

using namespace std::chrono_literals;
using WaitClock = std::chrono::steady_clock;

constexpr auto kFrame = 250ms;       // between two looks at a run that is watched
constexpr auto kFirstPause = 100ms;  // before a server that is away is asked again
constexpr auto kLongestPause = 5000ms;
constexpr Duration kOneWait = 20s;  // well below what the client waits for an answer

std::string run_target(const std::string& flow, const std::string& id, std::string_view more = "") {
  return fmt::format("/v1/flows/{}/runs/{}{}", http::encode_percent(flow), http::encode_percent(id), more);
}

Result<JsonDocument> ask(Client& client, const std::string& target) {
  PAWL_TRY(const auto body, client.get(target));
  return parse_answer(body);
}

Result<JsonDocument> tell(Client& client, const std::string& target, Result<std::string> body) {
  if (!body) return fail(std::move(body).error());
  PAWL_TRY(const auto answer, client.call({.method = "POST", .target = target, .body = *std::move(body)}));
  return parse_answer(answer);
}

/// Repeats requests while the server is unreachable, for example during a restart, which runs survive. Does
/// not wait for a server that has never answered.
class PatientClient {
 public:
  using End = std::optional<WaitClock::time_point>;
  explicit PatientClient(Client& client) : client_(client) {}

  /// Gives up at `end`, with the error of the last attempt.
  Result<JsonDocument> ask(const std::string& target, End end = {}) {
    auto pause = kFirstPause;
    bool away = false;
    while (true) {
      auto answer = cli::ask(client_, target);
      const bool lost = !answer && is_temporary(answer.error().code());
      const bool over = end && WaitClock::now() >= *end;
      if (!lost && away) note("connected again");
      if (!lost) answered_ = true;
      if (!lost || !answered_ || over) return answer;
      if (!away) note(fmt::format("lost the server ({}); waiting for it", answer.error().message()));
      away = true;
      const auto next = WaitClock::now() + pause;
      std::this_thread::sleep_until(end ? std::min(next, *end) : next);
      pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
    }
  }

 private:
  Client& client_;
  bool answered_ = false;
};

/// The number of steps of a flow and the index of this one, for the progress bar.
class Steps {
 public:
  Steps(Client& client, const std::string& flow) {
    const auto flows = ask(client, "/v1/flows");
    const auto list = flows ? flows->root().find("flows") : std::nullopt;
    for (std::size_t i = 0; list && i < list->size(); ++i) {
      if (text_of(list->at(i), "name") != flow) continue;
      const auto steps = list->at(i).find("steps");
      for (std::size_t j = 0; steps && j < steps->size(); ++j)
        names_.push_back(text_of(steps->at(j), "name"));
    }
  }

  void show(ProgressBar& bar, JsonValue run) const {
    const auto step = text_of(run, "step");
    const auto place = std::ranges::find(names_, step) - names_.begin();
    const auto count = std::max<std::size_t>(names_.size(), 1);
    const auto progress = run.find("progress");
    const auto share = progress ? progress->as_number().value_or(0) : 0;
    bar.rename(
        fmt::format("step {} of {}: {}", std::min(static_cast<std::size_t>(place) + 1, count), count, step));
    std::string behind = text_of(run, "status");
    if (const auto attempt = number_of(run, "attempt"); attempt > 1)
      behind += fmt::format(", attempt {}", attempt);
    for (const auto* name : {"progress_text", "error"}) {
      if (const auto text = text_of(run, name); !text.empty()) behind += ", " + text;
    }
    bar.show((static_cast<double>(std::min(static_cast<std::size_t>(place), count)) + share) /
                 static_cast<double>(count),
             behind);
  }

 private:
  std::vector<std::string> names_;
};

/// Polls the run and shows its progress.
Result<JsonDocument> watch_run(Client& client, const std::string& flow, const std::string& id,
                               std::optional<Duration> most) {
  const auto end = most ? std::optional(WaitClock::now() + *most) : std::nullopt;
  const Steps steps(client, flow);
  PatientClient patient(client);
  ProgressBar bar("");
  while (true) {
    PAWL_TRY(auto run, patient.ask(run_target(flow, id), end));
    if (run_finished(run.root())) return run;
    steps.show(bar, run.root());
    if (end && WaitClock::now() >= *end) {
      return fail(Code::timed_out, fmt::format("{} \"{}\" is still {} after {}", flow, id,
                                               text_of(run.root(), "state"), to_string(*most)));
    }
    std::this_thread::sleep_for(kFrame);
  }
}

/// Waits on the server for the end of the run.
Result<JsonDocument> await_run(Client& client, const std::string& flow, const std::string& id,
                               std::optional<Duration> most) {
  const auto end = most ? std::optional(WaitClock::now() + *most) : std::nullopt;
  PatientClient patient(client);
  PAWL_TRY(auto present, patient.ask(run_target(flow, id)));
  if (run_finished(present.root())) return present;
  while (true) {
    auto wait = kOneWait;
    if (end) {
      const auto left = std::chrono::duration_cast<Duration>(*end - WaitClock::now());
      wait = std::clamp(left, Duration::zero(), kOneWait);
    }
    auto run = patient.ask(run_target(flow, id, fmt::format("/wait?timeout={}us", wait.count())), end);
    const bool over = most && wait < kOneWait;
    if (run || run.error().code() != Code::timed_out || over) return run;
  }
}

int wait_and_show(const Common& common, Client& client, const std::string& flow, const std::string& id,
                  std::optional<Duration> most) {
  const auto run =
      errors_are_terminal() ? watch_run(client, flow, id, most) : await_run(client, flow, id, most);
  const int shown = present(run, common.json, show_run);
  return shown == kOk ? run_exit_code(run->root()) : shown;
}

Result<std::string> start_body(const RunStartArguments& arguments) {
  PAWL_TRY(const auto request, read_json(arguments.request, "the request"));
  JsonWriter out;
  out.begin_object().key("request").embed(request);
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out.key(name).string(value);
  };
  text("id", arguments.id);
  text("queue", arguments.queue);
  text("delay", arguments.delay);
  text("on", arguments.on);
  text("from", arguments.from);
  if (arguments.priority) out.key("priority").integer(*arguments.priority);
  if (!arguments.after.empty()) {
    const auto slash = arguments.after.find('/');
    if (slash == std::string::npos) {
      return fail(Code::invalid_argument,
                  fmt::format("--after names a run as FLOW/ID, not \"{}\"", arguments.after));
    }
    out.key("after").begin_object().key("flow").string(arguments.after.substr(0, slash));
    out.key("id").string(arguments.after.substr(slash + 1)).end_object();
  }
  return out.end_object().take();
}

/// Reads pages until the limit is reached.
Result<JsonDocument> list_all(Client& client, const RunListArguments& arguments) {
  auto wanted = arguments.limit;
  auto cursor = arguments.cursor;
  std::string filter;
  for (const auto& [name, value] : {std::pair<std::string_view, const std::string&>{"flow", arguments.flow},
                                    {"state", arguments.state},
                                    {"queue", arguments.queue}}) {
    if (!value.empty()) filter += fmt::format("&{}={}", name, http::encode_percent(value));
  }
  filter += fmt::format("&order={}", arguments.order);
  if (arguments.finished || arguments.unfinished) filter += fmt::format("&finished={}", arguments.finished);
  JsonWriter out;
  out.begin_object().key("runs").begin_array();
  while (true) {
    auto target = fmt::format("/v1/runs?limit={}{}", std::min(wanted, kMostPage), filter);
    if (!cursor.empty()) target += "&cursor=" + http::encode_percent(cursor);
    PAWL_TRY(const auto page, ask(client, target));
    const auto runs = page.root().find("runs");
    const auto count = runs ? runs->size() : 0;
    for (std::size_t i = 0; i < count; ++i) out.embed(runs->at(i).to_text());
    cursor = text_of(page.root(), "next");
    wanted -= std::min(count, wanted);
    if (cursor.empty() || wanted == 0) break;
  }
  out.end_array();
  if (!cursor.empty()) out.key("next").string(cursor);
  PAWL_TRY(const auto text, out.end_object().take());
  return parse_answer(text);
}

int steer(const Common& common, const RunArguments& arguments, std::string_view verb, std::string_view field,
          const std::string& value) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  JsonWriter out;
  out.begin_object();
  if (!value.empty()) out.key(field).string(value);
  return present(tell(*client, run_target(arguments.flow, arguments.id, fmt::format("/{}", verb)),
                      out.end_object().take()),
                 common.json, show_run);
}

/// Prints each span when it ends, until the run ends.
int follow_logs(const Common& common, Client& client, const std::string& target) {
  PatientClient patient(client);
  std::size_t printed = 0;
  std::int64_t generation = 0;
  while (true) {
    const auto timeline = patient.ask(target);
    if (!timeline) return report(timeline.error());
    const auto run = timeline->root().find("run");
    const auto spans = timeline->root().find("spans");
    if (!run || !spans) return report(Error(Code::answer_invalid, "the timeline has no run or no spans"));
    // A run that was started again has spans of its own.
    if (number_of(*run, "generation") != generation) printed = 0;
    generation = number_of(*run, "generation");
    while (printed < spans->size() && spans->at(printed).find("to")) {
      const auto span = spans->at(printed++);
      fmt::print("{}\n", common.json ? inert_json(span.to_text()) : span_line(span));
    }
    if (std::fflush(stdout) != 0) return kFailed;
    if (run_finished(*run)) return kOk;
    std::this_thread::sleep_for(kFrame);
  }
}

}  // namespace

int run_runs(const Common& common, const RunListArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  return present(list_all(*client, arguments), common.json, show_runs);
}

int run_run_start(const Common& common, const RunStartArguments& arguments) {
  auto body = start_body(arguments);
  if (!body) return report(body.error());
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer =
      client->call_once({.method = "POST",
                         .target = fmt::format("/v1/flows/{}/runs", http::encode_percent(arguments.flow)),
                         .body = *std::move(body)},
                        request_key(arguments.idempotency_key));
  const auto run = answer ? parse_answer(*answer) : fail(answer.error());
  if (!run || !arguments.wait) return present(run, common.json, show_run);
  return wait_and_show(common, *client, text_of(run->root(), "flow"), text_of(run->root(), "id"), {});
}

int run_run_show(const Common& common, const RunArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  return present(ask(*client, run_target(arguments.flow, arguments.id)), common.json, show_run);
}

int run_run_wait(const Common& common, const RunArguments& arguments) {
  std::optional<Duration> most;
  if (!arguments.timeout.empty()) {
    const auto parsed = parse_duration(arguments.timeout);
    if (!parsed) return report(parsed.error());
    most = *parsed;
  }
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  return wait_and_show(common, *client, arguments.flow, arguments.id, most);
}

int run_run_logs(const Common& common, const RunArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto target = run_target(arguments.flow, arguments.id, "/timeline");
  if (arguments.follow) return follow_logs(common, *client, target);
  return present(ask(*client, target), common.json, show_timeline);
}

int run_run_cancel(const Common& common, const RunArguments& arguments) {
  return steer(common, arguments, "cancel", "reason", arguments.reason);
}
int run_run_pause(const Common& common, const RunArguments& arguments) {
  return steer(common, arguments, "pause", "", "");
}
int run_run_resume(const Common& common, const RunArguments& arguments) {
  return steer(common, arguments, "resume", "", "");
}
int run_run_retry(const Common& common, const RunArguments& arguments) {
  return steer(common, arguments, "retry", "step", arguments.step);
}

}  // namespace pawl::cli
