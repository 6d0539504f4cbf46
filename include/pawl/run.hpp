// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One run of a flow, as stored and as returned to callers. Runs are instances of an ordinary machine; each
/// flow has such a machine under its own name (see `pawl/flow.hpp`).
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

/// State of a run. The last five are terminal.
enum class RunState : std::uint8_t {
  fresh,       ///< not started; left in the commit that creates the run
  delayed,     ///< until its start time
  waiting,     ///< for its upstream run
  running,     ///< a step runs, or waits for the queue, a worker or its next attempt
  joining,     ///< waits for its children
  paused,      ///< until it is resumed
  closing,     ///< its outcome is known; steps are undone and finalizers run
  done,        ///< every step is done
  handed_off,  ///< a step ended the run early with success; the response is kept
  aborted,     ///< a step ended the run without a retry
  failed,      ///< a step cannot succeed, or its retries are exhausted
  cancelled,   ///< on request, or because its upstream run did not end as required
};

bool is_finished(RunState state);

/// Who caused a failure.
enum class FailureKind : std::uint8_t { system, user };

/// Which end of the upstream run lets a dependent run start.
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

/// The run that a dependent run waits for, and how it ended.
struct Upstream {
  RunRef run;
  RunAfter on = RunAfter::success;
  std::optional<RunState> ended{};
  std::optional<Json> response{};
  bool operator==(const Upstream&) const = default;
};

/// What a run waits for before its first step, in this order: the start time, the upstream run, the queue.
struct RunPlan {
  std::optional<Time> not_before{};
  std::optional<Upstream> after{};
  std::optional<std::string> queue{};
  std::int32_t priority = 0;
  bool operator==(const RunPlan&) const = default;
};

/// Identifies one run. Flow and id alone do not: a finished run may be followed by another with the same id.
struct ExactRun {
  std::string flow;
  std::string id;
  std::optional<std::string> ulid{};  ///< absent if an earlier release did not store it
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
  std::vector<ExactRun> dependents{};  ///< notified when this run ends
  bool operator==(const RunFamily&) const = default;
};

/// Error, cancel and cleanup state.
struct RunControl {
  std::optional<RunState> ending{};      ///< the terminal state after cleanup
  std::optional<std::string> cleanup{};  ///< the undo or finalizer that runs
  std::optional<std::string> error{};
  std::optional<FailureKind> kind{};
  std::map<std::string, std::uint32_t> rewinds{};  ///< per step: how often it rewound the run
  std::vector<std::string> cleanup_errors{};
  std::optional<std::string> cancel{};  ///< the reason of a requested cancellation
  std::optional<std::string> retry{};   ///< the step at which to continue, if requested
  bool pause = false;
  bool operator==(const RunControl&) const = default;
};

/// JSON text that was validated when it was received, so that writing does not validate it again.
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

/// The last accepted completion of a claimed step: a repeat of it gets the first answer.
struct LastCompletion {
  std::int64_t number = 0;    ///< of the lease
  std::uint32_t attempt = 0;  ///< of the lease
  std::string content;        ///< digest of the outcome and response
  bool operator==(const LastCompletion&) const = default;
};

/// Stored data of a run.
struct RunData {
  std::string ulid;
  CheckedJson request{};
  CheckedJson response{};  ///< as the last completed step left it
  std::string step;        ///< the current one, or the next
  std::optional<RunPlan> plan{};
  std::optional<RunFamily> family{};
  std::optional<RunControl> control{};
  std::optional<LastCompletion> completion{};
  bool operator==(const RunData&) const = default;
};

/// How to start a run.
struct RunOptions {
  std::string id{};                 ///< at most one unfinished run per flow and id; empty: generated
  std::string queue{};              ///< a permit pool; limits how many of its runs proceed at a time
  std::int32_t priority = 0;        ///< in the queue; higher goes first
  std::optional<Duration> delay{};  ///< before the first step
  std::optional<RunRef> after{};    ///< the upstream run
  RunAfter on = RunAfter::success;
  std::optional<RunRef> parent{};
  std::string from{};  ///< the step to start at; empty: the first
  /// A repeat with the same request id and content returns the run that the first request started, even if it
  /// has finished.
  std::string request_id{};
};

/// A run as returned to callers.
struct Run {
  std::string flow;
  std::string id;
  std::string ulid;
  RunState state = RunState::fresh;
  std::string status;  ///< more detailed than the state: queued, offered, retrying, cancelling, …
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
  std::optional<double> progress{};  ///< of the current step, from 0 to 1
  std::string progress_text;
  Time created_at{};
  Time at{};
  bool attached = false;  ///< returned by a start that found it unfinished
};

struct RunPage {
  std::vector<Run> runs;
  std::string next;  ///< cursor of the next page; empty on the last page
};

}  // namespace pawl
