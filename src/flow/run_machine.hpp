// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machine of every run. It knows no flow: the handlers of the steps create the events, which contain
/// what comes next. The works `kWatch` and `kPlan` look up what the machine itself cannot know.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/run.hpp"
#include "pawl/verify.hpp"

namespace pawl::flow_machine {

/// Work that is not a step: `kWatch` reads the upstream run, `kPlan` decides what to undo.
inline constexpr std::string_view kWatch = "@watch";
inline constexpr std::string_view kPlan = "@plan";

struct Begin {};
/// Payload of `kPlan`: whether the current step has started, so that it is undone, too.
struct Plan {
  bool begun = false;
};
struct DelayOver {};
/// Registers a dependent run, which is notified when this run ends.
struct Watch {
  ExactRun dependent;
};
struct UpstreamEnded {
  RunRef run;
  RunState state = RunState::done;
  Json response{};
  std::optional<std::string> dependent{};  ///< ULID of the run that is notified
};
struct ChildEnded {
  ExactRun run;
  RunState state = RunState::done;
};

/// `next` is the step that follows; empty: the run ends.
struct StepDone {
  std::string step;
  std::string next;
  std::optional<Json> response{};
  std::vector<ExactRun> children{};  ///< to wait for
  bool closes = false;               ///< every step is done and `next` is a finalizer
  std::optional<LastCompletion> completion{};
};
struct StepRewound {
  std::string step;
  std::string next;
  std::optional<Json> response{};
  std::string reason;
  std::optional<LastCompletion> completion{};
};
/// The run ends as `ending`: immediately, or after the cleanup if `next` is `kPlan`.
struct StepEnded {
  std::string step;
  RunState ending = RunState::failed;
  std::string next;
  std::optional<Json> response{};
  std::string reason;
  std::optional<FailureKind> kind{};
  std::optional<LastCompletion> completion{};
};
/// An attempt at a claimed step has failed and will be retried. The completion is stored to recognize a
/// repeat.
struct StepFailed {
  std::string step;
  std::uint32_t attempt = 0;
  std::string error;
  std::optional<LastCompletion> completion{};
};
/// The step has stopped, as requested.
struct StepStopped {
  std::string step;
  std::string reason;
  std::optional<LastCompletion> completion{};
};
/// An undo, a finalizer or the planning has ended; `next` is the next cleanup work, if any.
struct CleanedUp {
  std::string step;
  std::string next;
  std::optional<std::string> error{};
};

struct Cancel {
  std::string reason;
};
struct Pause {};
struct Resume {};
struct Retry {
  std::string step;
};

namespace detail {

RunControl& control_of(RunData& data);
RunFamily& family_of(RunData& data);

void delay(RunData& data, Effects& effects);
void watch(RunData& data, Effects& effects);
/// Enters the run's queue, if it has one.
void enter_queue(const RunData& data, Effects& effects);
void run_step(RunData& data, Effects& effects);
void pause(RunData& data, Effects& effects);
/// Ends as cancelled after the cleanup; `begun`: the current step may have had effects.
void cancel(RunData& data, std::string reason, bool begun, Effects& effects);
void clean_up(RunData& data, const std::string& next, Effects& effects);
void notify_end(const RunData& data, RunState state, Effects& effects);
void record_child(RunData& data, const ChildEnded& child);
void record_upstream(RunData& data, const UpstreamEnded& upstream);
/// Stores the completion of a claimed step, if the event has one.
template <class E>
void store_completion(RunData& data, const E& step) {
  if (step.completion) data.completion = step.completion;
}
/// Stores what every end of a step may have: a response and a completion.
template <class E>
void store_result(RunData& data, const E& step) {
  if (step.response) data.response = *step.response;
  store_completion(data, step);
}
void record_done(RunData& data, const StepDone& done);
void record_rewound(RunData& data, const StepRewound& step);
void record_end(RunData& data, const StepEnded& end);
void record_dependent(RunData& data, const ExactRun& dependent);
void record_cleaned(RunData& data, const CleanedUp& cleaned);

bool is_delayed(const RunData& data);
bool waits_for_upstream(const RunData& data);  // the upstream run has not ended
bool is_unsatisfied(const RunData& data);      // the upstream run has not ended as required
bool has_open_children(const RunData& data);
bool would_satisfy(const RunData& data, const UpstreamEnded& upstream);
/// The notification is for an earlier run of this id.
bool is_for_other_run(const RunData& data, const UpstreamEnded& upstream);
std::string unsatisfied_reason(const RunData& data);

inline bool cancel_requested(const RunData& data) { return data.control && data.control->cancel; }
inline bool pause_requested(const RunData& data) { return data.control && data.control->pause; }
inline bool retry_requested(const RunData& data) { return data.control && data.control->retry; }
inline bool ends_as(const RunData& data, RunState state) {
  return data.control && data.control->ending == state;
}

/// Continues at the requested step.
void retry(RunData& data, Effects& effects);
/// Ends the run and notifies its parent and dependents.
template <RunState kState>
struct End {
  void operator()(RunData& data, const CleanedUp& cleaned, Effects& effects) const {
    record_cleaned(data, cleaned);
    notify_end(data, kState, effects);
  }
  void operator()(RunData& data, const StepEnded& end, Effects& effects) const {
    record_end(data, end);
    notify_end(data, kState, effects);
  }
  void operator()(RunData& data, const StepDone& done, Effects& effects) const {
    record_done(data, done);
    notify_end(data, kState, effects);
  }
};

}  // namespace detail

using enum RunState;

inline constexpr auto run =
    machine<RunState, RunData>("run")
        .initial(fresh)
        .generations()

        // Before the first step.
        .on<Begin>(fresh, delayed, when([](const RunData& data) { return detail::is_delayed(data); }),
                   [](RunData& data, const Begin&, Effects& effects) { detail::delay(data, effects); })
        .on<Begin>(fresh, waiting, when([](const RunData& data) { return detail::waits_for_upstream(data); }),
                   [](RunData& data, const Begin&, Effects& effects) { detail::watch(data, effects); })
        .on<Begin>(fresh, running,
                   [](RunData& data, const Begin&, Effects& effects) { detail::run_step(data, effects); })
        .on<DelayOver>(delayed, waiting,
                       when([](const RunData& data) { return detail::waits_for_upstream(data); }),
                       [](RunData& data, const DelayOver&, Effects& effects) {
                         data.plan->not_before.reset();
                         detail::watch(data, effects);
                       })
        .on<DelayOver>(delayed, running,
                       [](RunData& data, const DelayOver&, Effects& effects) {
                         data.plan->not_before.reset();
                         detail::run_step(data, effects);
                       })
        .stay<UpstreamEnded>(from(waiting, paused),
                             when([](const RunData& data, const UpstreamEnded& upstream) {
                               return detail::is_for_other_run(data, upstream);
                             }))
        .on<UpstreamEnded>(waiting, running, when([](const RunData& data, const UpstreamEnded& upstream) {
                             return detail::would_satisfy(data, upstream);
                           }),
                           [](RunData& data, const UpstreamEnded& upstream, Effects& effects) {
                             detail::record_upstream(data, upstream);
                             detail::run_step(data, effects);
                           })
        .on<UpstreamEnded>(waiting, closing,
                           [](RunData& data, const UpstreamEnded& upstream, Effects& effects) {
                             detail::record_upstream(data, upstream);
                             detail::cancel(data, detail::unsatisfied_reason(data), false, effects);
                           })
        .stay<UpstreamEnded>(
            paused,
            [](RunData& data, const UpstreamEnded& upstream) { detail::record_upstream(data, upstream); })

        // Steps.
        .on<StepDone>(running, closing,
                      when([](const RunData& data) { return detail::cancel_requested(data); }),
                      [](RunData& data, const StepDone& done, Effects& effects) {
                        detail::store_result(data, done);
                        detail::cancel(data, *data.control->cancel, true, effects);
                      })
        .on<StepDone>(running, running,
                      when([](const RunData& data) { return detail::retry_requested(data); }),
                      [](RunData& data, const StepDone& done, Effects& effects) {
                        detail::record_done(data, done);
                        detail::retry(data, effects);
                      })
        .on<StepDone>(running, RunState::done,
                      when([](const RunData&, const StepDone& step) { return step.next.empty(); }),
                      detail::End<RunState::done>{})
        .on<StepDone>(running, closing,
                      when([](const RunData&, const StepDone& step) { return step.closes; }),
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::store_result(data, step);
                        detail::control_of(data).ending = RunState::done;
                        detail::clean_up(data, step.next, effects);
                      })
        .on<StepDone>(running, paused,
                      when([](const RunData& data) { return detail::pause_requested(data); }),
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::record_done(data, step);
                        detail::pause(data, effects);
                      })
        .on<StepDone>(running, joining, when([](const RunData& data, const StepDone& step) {
                        if (step.children.empty()) return false;
                        auto after = data;
                        detail::record_done(after, step);
                        return detail::has_open_children(after);
                      }),
                      // Its children may need the permit; the run enters the queue again afterwards.
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::record_done(data, step);
                        effects.leave_queue();
                      })
        .on<StepDone>(running, running,
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::record_done(data, step);
                        effects.work(data.step, Begin{});
                      })
        .on<StepRewound>(running, closing,
                         when([](const RunData& data) { return detail::cancel_requested(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::store_result(data, step);
                           detail::cancel(data, *data.control->cancel, true, effects);
                         })
        .on<StepRewound>(running, running,
                         when([](const RunData& data) { return detail::retry_requested(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::record_rewound(data, step);
                           detail::retry(data, effects);
                         })
        .on<StepRewound>(running, paused,
                         when([](const RunData& data) { return detail::pause_requested(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::record_rewound(data, step);
                           detail::pause(data, effects);
                         })
        .on<StepRewound>(running, running,
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::record_rewound(data, step);
                           effects.work(data.step, Begin{});
                         })
        // A request takes precedence over an end that it may have caused.
        .on<StepEnded>(running, closing,
                       when([](const RunData& data) { return detail::cancel_requested(data); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::store_result(data, step);
                         detail::cancel(data, *data.control->cancel, true, effects);
                       })
        .on<StepEnded>(running, running,
                       when([](const RunData& data) { return detail::retry_requested(data); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::store_result(data, step);
                         detail::retry(data, effects);
                       })
        .on<StepEnded>(running, closing,
                       when([](const RunData&, const StepEnded& step) { return !step.next.empty(); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::record_end(data, step);
                         effects.work(step.next, Plan{.begun = true});
                       })
        .on<StepEnded>(running, handed_off,
                       when([](const RunData&, const StepEnded& step) { return step.ending == handed_off; }),
                       detail::End<handed_off>{})
        .on<StepEnded>(running, aborted,
                       when([](const RunData&, const StepEnded& step) { return step.ending == aborted; }),
                       detail::End<aborted>{})
        .on<StepEnded>(running, failed, detail::End<failed>{})
        .on<StepStopped>(running, closing,
                         when([](const RunData& data) { return detail::cancel_requested(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::store_completion(data, step);
                           detail::cancel(data, *data.control->cancel, true, effects);
                         })
        .on<StepStopped>(running, running,
                         when([](const RunData& data) { return detail::retry_requested(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::store_completion(data, step);
                           detail::retry(data, effects);
                         })
        // The run was resumed in the meantime.
        .on<StepStopped>(running, running,
                         when([](const RunData& data) { return !detail::pause_requested(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::store_completion(data, step);
                           effects.work(data.step, Begin{});
                         })
        .on<StepStopped>(running, paused,
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::store_completion(data, step);
                           detail::pause(data, effects);
                         })
        .stay<StepFailed>(running,
                          [](RunData& data, const StepFailed& step) { detail::store_completion(data, step); })

        // Children.
        .on<ChildEnded>(joining, running, when([](const RunData& data, const ChildEnded& child) {
                          auto after = data;
                          detail::record_child(after, child);
                          return !detail::has_open_children(after);
                        }),
                        [](RunData& data, const ChildEnded& child, Effects& effects) {
                          detail::record_child(data, child);
                          detail::run_step(data, effects);
                        })
        .stay<ChildEnded>(from(delayed, waiting, running, joining, paused, closing),
                          [](RunData& data, const ChildEnded& child) { detail::record_child(data, child); })
        .stay<Watch>(
            from(delayed, waiting, running, joining, paused, closing),
            [](RunData& data, const Watch& watch) { detail::record_dependent(data, watch.dependent); })

        // Requests.
        .on<Cancel>(from(delayed, waiting, joining, paused), closing,
                    [](RunData& data, const Cancel& cancel, Effects& effects) {
                      effects.clear_timer("delay");
                      effects.cancel_work(std::string(kWatch));
                      detail::cancel(data, cancel.reason, false, effects);
                    })
        .stay<Cancel>(running,
                      [](RunData& data, const Cancel& cancel, Effects& effects) {
                        detail::control_of(data).cancel = cancel.reason;
                        effects.stop_work(data.step);
                      })
        .on<Pause>(from(delayed, waiting, joining), paused,
                   [](RunData&, const Pause&, Effects& effects) {
                     effects.clear_timer("delay");
                     effects.cancel_work(std::string(kWatch));
                   })
        .stay<Pause>(running,
                     [](RunData& data, const Pause&, Effects& effects) {
                       detail::control_of(data).pause = true;
                       effects.withdraw_work(data.step);
                     })
        .on<Resume>(paused, delayed, when([](const RunData& data) { return detail::is_delayed(data); }),
                    [](RunData& data, const Resume&, Effects& effects) { detail::delay(data, effects); })
        .on<Resume>(paused, waiting,
                    when([](const RunData& data) { return detail::waits_for_upstream(data); }),
                    [](RunData& data, const Resume&, Effects& effects) { detail::watch(data, effects); })
        .on<Resume>(paused, closing, when([](const RunData& data) { return detail::is_unsatisfied(data); }),
                    [](RunData& data, const Resume&, Effects& effects) {
                      detail::cancel(data, detail::unsatisfied_reason(data), false, effects);
                    })
        .on<Resume>(paused, joining,
                    when([](const RunData& data) { return detail::has_open_children(data); }))
        .on<Resume>(paused, running,
                    [](RunData& data, const Resume&, Effects& effects) { detail::run_step(data, effects); })
        .stay<Resume>(running, when([](const RunData& data) { return detail::pause_requested(data); }),
                      [](RunData& data) { data.control->pause = false; })
        .stay<Retry>(from(delayed, waiting, paused),
                     [](RunData& data, const Retry& again) { data.step = again.step; })
        .on<Retry>(joining, running,
                   [](RunData& data, const Retry& again, Effects& effects) {
                     detail::control_of(data).retry = again.step;
                     detail::enter_queue(data, effects);
                     detail::retry(data, effects);
                   })
        .stay<Retry>(running,
                     [](RunData& data, const Retry& again, Effects& effects) {
                       detail::control_of(data).retry = again.step;
                       effects.stop_work(data.step);
                     })

        // The end.
        .on<CleanedUp>(closing, closing,
                       when([](const RunData&, const CleanedUp& cleaned) { return !cleaned.next.empty(); }),
                       [](RunData& data, const CleanedUp& cleaned, Effects& effects) {
                         detail::record_cleaned(data, cleaned);
                         detail::clean_up(data, cleaned.next, effects);
                       })
        .on<CleanedUp>(closing, RunState::done,
                       when([](const RunData& data) { return detail::ends_as(data, RunState::done); }),
                       detail::End<RunState::done>{})
        .on<CleanedUp>(closing, handed_off,
                       when([](const RunData& data) { return detail::ends_as(data, handed_off); }),
                       detail::End<handed_off>{})
        .on<CleanedUp>(closing, aborted,
                       when([](const RunData& data) { return detail::ends_as(data, aborted); }),
                       detail::End<aborted>{})
        .on<CleanedUp>(closing, failed,
                       when([](const RunData& data) { return detail::ends_as(data, failed); }),
                       detail::End<failed>{})
        .on<CleanedUp>(closing, cancelled, detail::End<cancelled>{})
        .terminal(RunState::done, handed_off, aborted, failed, cancelled);

static_assert(verified<run>);

}  // namespace pawl::flow_machine
