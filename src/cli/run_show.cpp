// SPDX-License-Identifier: Apache-2.0
#include "cli/run_show.hpp"

#include <fmt/format.h>

#include "cli/show.hpp"
#include "cli/source.hpp"

namespace pawl::cli {
namespace {

void run_line(std::string_view label, std::string_view value, Style style = Style::plain) {
  if (value.empty()) return;
  fmt::print("{} {}\n", paint(fmt::format("{:<10}", label), Style::dim), paint(printable(value), style));
}

std::string ref_text(JsonValue ref) { return fmt::format("{}/{}", text_of(ref, "flow"), text_of(ref, "id")); }

/// Made printable where it is put together: its line ends are meant.
void run_json(JsonValue run, std::string_view name) {
  const auto value = run.find(name);
  if (!value || value->kind() == JsonKind::null) return;
  fmt::print("{} {}\n", paint(fmt::format("{:<10}", name), Style::dim), pretty(*value, 11));
}

/// "retrying", or the state where that says all.
std::string state_text(JsonValue run) {
  const auto state = text_of(run, "state");
  const auto status = text_of(run, "status");
  return status.empty() || status == state ? state : fmt::format("{} ({})", state, status);
}

std::string took(JsonValue span) {
  const auto from = parse_time(text_of(span, "from"));
  const auto to = parse_time(text_of(span, "to"));
  if (!from || !to) return "…";
  return fmt::format("{:.3f}s", std::chrono::duration<double>(*to - *from).count());
}

Style span_style(JsonValue span) {
  const auto outcome = text_of(span, "outcome");
  if (!span.find("to")) return Style::busy;
  return outcome == "done" || outcome.empty() ? Style::plain : Style::bad;
}

std::string attempt_text(JsonValue span) {
  const auto attempt = number_of(span, "attempt");
  return attempt == 0 ? std::string() : std::to_string(attempt);
}

void show_relations(JsonValue run) {
  if (const auto after = run.find("after")) {
    const auto ended = text_of(*after, "ended");
    run_line("after", fmt::format("{} (on {}{}{})", ref_text(*after), text_of(*after, "on"),
                                  ended.empty() ? "" : ", ended ", ended));
  }
  if (const auto parent = run.find("parent")) run_line("parent", ref_text(*parent));
  const auto children = run.find("children");
  for (std::size_t i = 0; children && i < children->size(); ++i) {
    const auto ended = text_of(children->at(i), "ended");
    run_line("child",
             fmt::format("{} ({})", ref_text(children->at(i)), ended.empty() ? "unfinished" : ended));
  }
}

}  // namespace

bool run_finished(JsonValue run) {
  const auto finished = run.find("finished");
  return finished && finished->as_boolean().value_or(false);
}

int run_exit_code(JsonValue run) {
  const auto state = text_of(run, "state");
  return state == "done" || state == "handed_off" ? kOk : kRunEnded;
}

Style run_style(JsonValue run) {
  if (!run_finished(run)) return Style::good;
  return run_exit_code(run) == kOk ? Style::dim : Style::bad;
}

void show_runs(JsonValue page) {
  Table table({"FLOW", "ID", "STATE", "STEP", ">ATTEMPT", "CHANGED", "AGE", "ERROR"});
  const auto runs = page.find("runs");
  for (std::size_t i = 0; runs && i < runs->size(); ++i) {
    const auto run = runs->at(i);
    const auto at = text_of(run, "at");
    const auto status = text_of(run, "status");
    table.add({text_of(run, "flow"), Cell(text_of(run, "id"), Style::key), Cell(status, run_style(run)),
               text_of(run, "step"), attempt_text(run), to_seconds(at), ago(at),
               Cell(text_of(run, "error"), Style::bad)});
  }
  table.print();
  if (const auto next = text_of(page, "next"); !next.empty())
    note(fmt::format("there are more: --cursor {}", next));
}

void show_run(JsonValue run) {
  run_line("flow", text_of(run, "flow"));
  run_line("id", text_of(run, "id"), Style::key);
  run_line("ulid", text_of(run, "ulid"));
  run_line("state", state_text(run), run_style(run));
  const auto attempt = attempt_text(run);
  run_line("step", text_of(run, "step") + (attempt.empty() ? "" : fmt::format(" (attempt {})", attempt)));
  if (const auto progress = run.find("progress")) {
    run_line("progress", fmt::format("{:.0f} % {}", progress->as_number().value_or(0) * 100,
                                     text_of(run, "progress_text")));
  }
  const auto kind = text_of(run, "kind");
  run_line("error", text_of(run, "error") + (kind.empty() ? "" : fmt::format(" ({})", kind)), Style::bad);
  const auto errors = run.find("cleanup_errors");
  for (std::size_t i = 0; errors && i < errors->size(); ++i)
    run_line("cleanup", errors->at(i).as_string().value_or(""), Style::bad);
  run_line("next", when(text_of(run, "next_attempt")), Style::busy);
  run_line("begins", when(text_of(run, "not_before")));
  if (const auto queue = text_of(run, "queue"); !queue.empty())
    run_line("queue", fmt::format("{} (priority {})", queue, number_of(run, "priority")));
  show_relations(run);
  run_line("created", when(text_of(run, "created_at")));
  run_line("changed", when(text_of(run, "at")));
  run_json(run, "request");
  run_json(run, "response");
}

void show_timeline(JsonValue timeline) {
  Table table({"FROM", ">TOOK", "WHAT", "STEP", ">ATTEMPT", "OUTCOME", "ERROR"});
  const auto spans = timeline.find("spans");
  for (std::size_t i = 0; spans && i < spans->size(); ++i) {
    const auto span = spans->at(i);
    table.add({text_of(span, "from"), took(span), Cell(text_of(span, "kind"), Style::dim),
               Cell(text_of(span, "step"), Style::key), attempt_text(span),
               Cell(text_of(span, "outcome"), span_style(span)), Cell(text_of(span, "error"), Style::bad)});
  }
  table.print();
  const auto truncated = timeline.find("truncated");
  if (truncated && truncated->as_boolean().value_or(false)) note("older entries were removed by retention");
}

std::string span_line(JsonValue span) {
  const auto at = text_of(span, "from");
  const auto clock = at.size() > 23 ? at.substr(11, 12) : at;  // the day is in the JSON
  auto line = fmt::format("{}  {:>9}  {:<8}", paint(printable(clock), Style::dim), took(span),
                          printable(text_of(span, "kind")));
  line += paint(fmt::format("  {:<16}", printable(text_of(span, "step"))), Style::key);
  line += fmt::format("  {:>3}", attempt_text(span));
  line += paint(fmt::format("  {:<12}", printable(text_of(span, "outcome"))), span_style(span));
  return line + paint(printable(text_of(span, "error")), Style::bad);
}

}  // namespace pawl::cli
