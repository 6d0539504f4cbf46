// SPDX-License-Identifier: Apache-2.0
// Builds the timeline of a run from its entries.
#include <algorithm>

#include "flow/core.hpp"
#include "pawl/names.hpp"

namespace pawl {
namespace {

using Kind = RunSpan::Kind;

class TimelineBuilder {
 public:
  void read(const LogEvent& event) {
    if (event.kind == "created") reset();
    if (event.kind == "work") {
      read_work(event);
    } else {
      read_transition(event);
    }
  }

  std::vector<RunSpan> take(const Run& run) {
    // A first attempt starts with the entry that requested it.
    if (requested_at_ && !run.finished && run.attempt > 0)
      open(Kind::attempt, step_, *requested_at_, run.attempt);
    if (requested_at_ && !run.finished && run.attempt == 0) open(Kind::queue, step_, *requested_at_);
    return std::move(spans_);
  }

 private:
  /// Starts over: only the newest generation is shown.
  void reset() {
    spans_.clear();
    open_.reset();
    requested_at_.reset();
  }

  void open(Kind kind, std::string step, Time from, std::uint32_t attempt = 0) {
    spans_.push_back({.kind = kind, .step = std::move(step), .attempt = attempt, .from = from});
    open_ = spans_.size() - 1;
    requested_at_.reset();
  }
  void close(Time at, std::string outcome, std::string error = {}) {
    if (!open_) return;
    auto& span = spans_[*std::exchange(open_, std::nullopt)];
    span.to = at;
    span.outcome = std::move(outcome);
    span.error = std::move(error);
  }

  void read_work(const LogEvent& event) {
    const auto document = JsonDocument::parse(event.payload);
    if (!document) return;
    const auto root = document->root();
    const auto number = root.find("attempt");
    const auto attempt = static_cast<std::uint32_t>(number ? number->as_integer().value_or(0) : 0);
    const auto error = root.find("error");
    if (!error) {
      if (attempt == 0) return;
      // The attempt waited for its start, or the previous one was interrupted.
      if (requested_at_ && attempt > 1) {
        open(Kind::attempt, event.event, *requested_at_, attempt - 1);
      } else if (requested_at_ && *requested_at_ < event.at) {
        open(Kind::queue, event.event, *requested_at_);
        close(event.at, "");
      }
      close(event.at, open_ && spans_[*open_].kind == Kind::attempt ? "interrupted" : "");
      return open(Kind::attempt, event.event, event.at, attempt);
    }
    const auto again = root.find("again");
    fail_attempt(event.event, attempt, event.at, std::string(error->as_string().value_or("")));
    if (again && again->as_boolean() == true) open(Kind::backoff, event.event, event.at);
  }

  void fail_attempt(const std::string& step, std::uint32_t attempt, Time at, std::string error) {
    if (requested_at_) open(Kind::attempt, step, *requested_at_, attempt);
    close(at, "failed", std::move(error));
  }

  /// An attempt that an external worker reported as failed.
  void read_failure(const LogEvent& event) {
    auto failed = decode<flow_machine::StepFailed>(event.payload);
    if (!failed) return;
    fail_attempt(failed->step, failed->attempt, event.at, std::move(failed->error));
    open(Kind::backoff, std::move(failed->step), event.at);
  }

  /// The step was stopped because a retry of another step was requested.
  static bool stopped_for_retry(const LogEvent& event) {
    return event.event == "StepEnded" && event.state == "running";
  }

  /// `data`: after the event, if readable.
  static std::string outcome_of(const LogEvent& event, const Result<RunData>& data) {
    if (event.event == "StepDone" || event.event == "CleanedUp") return "done";
    if (event.event == "StepRewound") return "rewound";
    if (event.event == "StepStopped" || stopped_for_retry(event)) return "stopped";
    const auto ending = data && data->control ? data->control->ending : std::nullopt;
    return ending ? std::string(enum_name(*ending)) : event.state;
  }

  void read_transition(const LogEvent& event) {
    if (event.event == "StepFailed") return read_failure(event);
    const bool ends_step = event.event.starts_with("Step") || event.event == "CleanedUp";
    const bool stays = event.state == state_ && !ends_step;
    if (stays || event.kind == "message") return;
    const auto data = decode<RunData>(event.data);
    if (ends_step) {
      if (requested_at_) open(Kind::attempt, step_, *requested_at_, 1);
      const bool shows_error =
          (event.event == "StepEnded" && !stopped_for_retry(event)) || event.event == "StepRewound";
      close(event.at, outcome_of(event, data),
            shows_error && data && data->control ? data->control->error.value_or("") : std::string());
    }
    close(event.at, "");
    state_ = event.state;
    if (event.finished || !data) {
      requested_at_.reset();
      return;
    }
    step_ = data->step;
    if (event.state == "closing" && data->control) step_ = data->control->cleanup.value_or("");
    if (event.state == "running" || (event.state == "closing" && !step_.empty())) requested_at_ = event.at;
    if (event.state == "delayed") open(Kind::delay, {}, event.at);
    if (event.state == "waiting") open(Kind::wait, {}, event.at);
    if (event.state == "joining") open(Kind::join, step_, event.at);
    if (event.state == "paused") open(Kind::pause, {}, event.at);
  }

  std::vector<RunSpan> spans_;
  std::optional<std::size_t> open_;
  std::optional<Time> requested_at_;  // when the step was requested, until it starts
  std::string step_;
  std::string state_;
};

}  // namespace

std::vector<RunSpan> to_spans(const std::vector<LogEvent>& events, const Run& run) {
  TimelineBuilder builder;
  for (const auto& event : events) builder.read(event);
  return builder.take(run);
}

}  // namespace pawl
