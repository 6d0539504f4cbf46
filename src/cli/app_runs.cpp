// SPDX-License-Identifier: Apache-2.0
// The command line of `pawl runs` and `pawl run`.
#include "cli/app_parts.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostRunsListed = 1'000'000;

void add_run_list(CLI::App& app, int& status) {
  const auto given = make_given<RunListArguments>();
  auto& own = given->own;
  auto* verb = add_verb(app, status, "runs", "List runs of flows, newest first", given, run_runs);
  verb->add_option("--flow", own.flow, "only this flow");
  verb->add_option("--state", own.state, "only this state");
  verb->add_option("--queue", own.queue, "only runs that wait in this queue or hold a permit of it");
  auto* finished = verb->add_flag("--finished", own.finished, "only finished runs");
  verb->add_flag("--unfinished", own.unfinished, "only unfinished runs")->excludes(finished);
  verb->add_option("--order", own.order, "which runs come first")
      ->check(CLI::IsMember({"newest", "oldest"}))
      ->capture_default_str();
  verb->add_option("--cursor", own.cursor, "continue after this page");
  verb->add_option("-n,--limit", own.limit, "most runs to list, up to 1000000")
      ->type_name("N")
      ->check(between(std::size_t{1}, kMostRunsListed))
      ->capture_default_str();
}

void add_run_start(CLI::App& noun, int& status) {
  const auto given = make_given<RunStartArguments>();
  auto& own = given->own;
  auto* verb =
      add_verb(noun, status, "start", "Start a run; returns once it is durable", given, run_run_start);
  verb->add_option("flow", own.flow, "the flow's name")->required();
  verb->add_option("--request", own.request, "the run's request: JSON, @FILE, or - for standard input")
      ->type_name("JSON");
  verb->add_option("--id", own.id,
                   "the run's id; an unfinished run of this id is returned instead; default: a ULID");
  verb->add_option("--queue", own.queue, "the permit pool to queue in");
  verb->add_option("--priority", own.priority, "priority in the queue; higher goes first")->type_name("N");
  verb->add_option("--delay", own.delay, "delay before the run starts, such as 10s")->type_name("DURATION");
  auto* after =
      verb->add_option("--after", own.after, "start after this run has ended")->type_name("FLOW/ID");
  verb->add_option("--on", own.on, "which outcome of that run starts this one; default: success")
      ->check(CLI::IsMember({"success", "always", "failure"}))
      ->needs(after);
  verb->add_option("--from", own.from, "the step to start at; default: the first");
  verb->add_option("--idempotency-key", own.idempotency_key,
                   "repeats with the same key start one run; default: a new key")
      ->type_name("KEY");
  verb->add_flag("--wait", own.wait, "wait for the run's end, like `pawl run wait`");
}

CLI::App* add_run_verb(CLI::App& noun, int& status, const char* name, const char* text,
                       const std::shared_ptr<Given<RunArguments>>& given,
                       int (*run)(const Common&, const RunArguments&)) {
  auto* verb = add_verb(noun, status, name, text, given, run);
  verb->add_option("flow", given->own.flow, "the flow's name")->required();
  verb->add_option("id", given->own.id, "the run's id")->required();
  return verb;
}

}  // namespace

void add_runs(CLI::App& app, int& status) {
  add_run_list(app, status);
  auto* noun = add_noun(app, "run", "Start, watch and control runs of flows");
  add_run_start(*noun, status);
  const auto plain = [&](const char* name, const char* text, int (*run)(const Common&, const RunArguments&)) {
    add_run_verb(*noun, status, name, text, make_given<RunArguments>(), run);
  };
  plain("show", "Show one run", run_run_show);
  const auto wait = make_given<RunArguments>();
  add_run_verb(*noun, status, "wait",
               "Wait for the end of a run; exits with 7 if it is not done or handed off", wait, run_run_wait)
      ->add_option("--timeout", wait->own.timeout, "timeout, such as 10m; default: none")
      ->type_name("DURATION");
  const auto logs = make_given<RunArguments>();
  add_run_verb(*noun, status, "logs", "Show what took time in a run, oldest first", logs, run_run_logs)
      ->add_flag("-f,--follow", logs->own.follow, "follow live until the run has ended");
  const auto cancel = make_given<RunArguments>();
  add_run_verb(*noun, status, "cancel", "Stop a run and undo what it has done", cancel, run_run_cancel)
      ->add_option("--reason", cancel->own.reason, "reason to store with the run")
      ->type_name("TEXT");
  plain("pause", "Pause a run; a running step finishes", run_run_pause);
  plain("resume", "Resume a paused run", run_run_resume);
  const auto retry = make_given<RunArguments>();
  add_run_verb(*noun, status, "retry", "Retry a run from a step; a finished run is started again", retry,
               run_run_retry)
      ->add_option("--step", retry->own.step, "the step; default: the current one");
}

}  // namespace pawl::cli
