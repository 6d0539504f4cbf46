// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One run of a flow, as it is stored and shown. Runs are instances of an ordinary machine; each flow has one
/// under its own name (see `pawl/flow.hpp`).
///
///     auto run = flows.get("ship", "order-17").value();
///     if (run.state == pawl::RunState::failed) fmt::print("{}: {}\n", run.step, run.error);
///
/// Everything here is a value.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Where a run stands. The last five are its ends.
enum class RunState : std::uint8_t {
  fresh,       ///< not begun; left in the commit that makes the run
  delayed,     ///< until its time has come
  waiting,     ///< for the run it comes after
  running,     ///< a step runs, or waits for its turn, a worker or its next attempt
  joining,     ///< for its children
  paused,      ///< until somebody resumes it
  closing,     ///< its outcome is known; what was done is undone, finalizers run
  done,        ///< every step was done
  handed_off,  ///< a step found that there is nothing left to do; the response is kept
  aborted,     ///< a step said that it must not go on
  failed,      ///< a step failed for good, or its retries are used up
  cancelled,   ///< by somebody, or because the run it comes after ended otherwise than it needs
};

bool is_finished(RunState state);

/// Whose fault a failure is.
enum class FailureKind : std::uint8_t { system, user };

/// Which end of another run lets a dependent one begin.
enum class RunAfter : std::uint8_t {
  success,  ///< done or handed off
  always,
  failure,  ///< any other end
};

struct RunRef {
  std::string flow;
  std::string id;
  bool operator==(const RunRef&) const = default;
};

/// The run that another one comes after, and what became of it.
struct Upstream {
  RunRef run;
  RunAfter on = RunAfter::success;
  std::optional<RunState> ended{};
  std::optional<Json> response{};
  bool operator==(const Upstream&) const = default;
};

/// What has to come before the first step, in this order: the time, the other run, the turn in the queue.
struct RunPlan {
  std::optional<Time> not_before{};
  std::optional<Upstream> after{};
  std::optional<std::string> queue{};
  std::int32_t priority = 0;
  bool operator==(const RunPlan&) const = default;
};

/// One run among those of its id: a later one of the same flow and id is another.
struct ExactRun {
  std::string flow;
  std::string id;
  std::optional<std::string> ulid{};  ///< empty if an earlier release did not store it
  bool operator==(const ExactRun&) const = default;
};

struct ChildRun {
  ExactRun run;
  std::optional<RunState> ended{};
  bool operator==(const ChildRun&) const = default;
};

struct RunFamily {
  std::optional<RunRef> parent{};
  std::vector<ChildRun> children{};
  std::vector<ExactRun> dependents{};  ///< told when this run ends
  bool operator==(const RunFamily&) const = default;
};

/// Error, cancel and cleanup state.
struct RunControl {
  std::optional<RunState> ending{};      ///< what the run ends as
  std::optional<std::string> cleanup{};  ///< what is being undone or finished
  std::optional<std::string> error{};
  std::optional<FailureKind> kind{};
  std::map<std::string, std::uint32_t> rewinds{};  ///< how often a step has sent the run back
  std::vector<std::string> cleanup_errors{};
  std::optional<std::string> cancel{};  ///< somebody's reason
  std::optional<std::string> retry{};   ///< the step at which it is to go on
  bool pause = false;
  bool operator==(const RunControl&) const = default;
};

/// JSON text that was checked when it came in, so that it is not checked again each time it is written.
struct CheckedJson : Json {
  CheckedJson() = default;
  CheckedJson(Json checked) : Json(std::move(checked)) {}
};
template <>
struct Codec<CheckedJson> {
  static void write(JsonWriter& out, const CheckedJson& value) { out.splice(value.text); }
  static bool read(JsonValue in, CheckedJson& out, DecodeFailure& why) {
    return Codec<Json>::read(in, out, why);
  }
};

/// The completion of a claimed step that was taken last: a repeat of it is answered like the first.
struct LastCompletion {
  std::int64_t number = 0;    ///< of the lease
  std::uint32_t attempt = 0;  ///< of the lease
  std::string content;        ///< what a repeat is equal in
  bool operator==(const LastCompletion&) const = default;
};

/// What is stored of a run.
struct RunData {
  std::string ulid;
  CheckedJson request{};
  CheckedJson response{};  ///< as the last step that was done has left it
  std::string step;        ///< the present one, or the next
  std::optional<RunPlan> plan{};
  std::optional<RunFamily> family{};
  std::optional<RunControl> control{};
  std::optional<LastCompletion> completion{};
  bool operator==(const RunData&) const = default;
};

/// How a run is to be started.
struct RunOptions {
  std::string id{};                 ///< one unfinished run per flow and id; empty: one of its own
  std::string queue{};              ///< a permit pool; it limits how many of its runs go on at a time
  std::int32_t priority = 0;        ///< in the queue; a higher one goes first
  std::optional<Duration> delay{};  ///< before it begins
  std::optional<RunRef> after{};    ///< the run it comes after
  RunAfter on = RunAfter::success;
  std::optional<RunRef> parent{};
  std::string from{};  ///< the step to begin at; empty: the first
  /// A repeat with the same id and content finds the run that the first has started, also a finished one.
  std::string request_id{};
};

/// A run as it is shown.
struct Run {
  std::string flow;
  std::string id;
  std::string ulid;
  RunState state = RunState::fresh;
  std::string status;  ///< more exactly than the state: queued, offered, retrying, cancelling, …
  bool finished = false;
  std::int64_t generation = 1;
  std::string step;
  std::uint32_t attempt = 0;
  std::string request;   ///< JSON
  std::string response;  ///< JSON
  std::string error;
  std::optional<FailureKind> kind{};
  std::optional<Time> next_attempt{};
  std::optional<RunPlan> plan{};
  std::optional<RunFamily> family{};
  std::vector<std::string> cleanup_errors{};
  std::optional<double> progress{};  ///< of the present step, from 0 to 1
  std::string progress_text;
  Time created_at{};
  Time at{};
  bool attached = false;  ///< a start that found it unfinished
};

struct RunPage {
  std::vector<Run> runs;
  std::string next;  ///< cursor of the next page; empty where this is the last
};

}  // namespace pawl
