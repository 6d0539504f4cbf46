// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machine of every run. It does not know any flow: what comes next is in the events, which the handlers
/// of the steps make, and who asks for it is told by the works `kWatch` and `kPlan`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/run.hpp"
#include "pawl/verify.hpp"

namespace pawl::flow_machine {

/// Work that is not a step: look at the upstream run; decide what is to be undone.
inline constexpr std::string_view kWatch = "@watch";
inline constexpr std::string_view kPlan = "@plan";

struct Begin {};
/// What `kPlan` is asked with: whether the present step has begun, so that it is undone, too.
struct Plan {
  bool begun = false;
};
struct DelayOver {};
/// Another run wants to be told of this one's end.
struct Watch {
  ExactRun dependent;
};
struct UpstreamEnded {
  RunRef run;
  RunState state = RunState::done;
  Json response{};
  std::optional<std::string> dependent{};  ///< ULID of the run that is told
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
  std::vector<ExactRun> children{};  ///< to be waited for
  bool closes = false;               ///< every step is done, and `next` is a finalizer
  std::optional<LastCompletion> completion{};
};
struct StepRewound {
  std::string step;
  std::string next;
  std::optional<Json> response{};
  std::string reason;
  std::optional<LastCompletion> completion{};
};
/// The run ends as `ending`: at once, or, where `next` is kPlan, when everything is undone and finished.
struct StepEnded {
  std::string step;
  RunState ending = RunState::failed;
  std::string next;
  std::optional<Json> response{};
  std::string reason;
  std::optional<FailureKind> kind{};
  std::optional<LastCompletion> completion{};
};
/// An attempt at a claimed step has failed and is retried; the completion is kept, so that a repeat of it is
/// recognized.
struct StepFailed {
  std::optional<LastCompletion> completion{};
};
/// The step does not run any more, as was asked for.
struct StepStopped {
  std::string step;
  std::string reason;
  std::optional<LastCompletion> completion{};
};
/// What there was to undo or to finish, one after the other.
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
RunFamily& family(RunData& data);

void delay(RunData& data, Effects& effects);
void watch(RunData& data, Effects& effects);
/// Takes its place in the queue, if it has one.
void enter_queue(const RunData& data, Effects& effects);
void run_step(RunData& data, Effects& effects);
void hold(RunData& data, Effects& effects);
/// Ends as cancelled once everything is undone; `begun`: the present step may have done something.
void cancel(RunData& data, std::string reason, bool begun, Effects& effects);
void clean_up(RunData& data, const std::string& next, Effects& effects);
void tell_end(const RunData& data, RunState state, Effects& effects);
void note_child(RunData& data, const ChildEnded& child);
void note_upstream(RunData& data, const UpstreamEnded& upstream);
/// Stores the completion of a claimed step, if the event has one.
template <class E>
void keep_completion(RunData& data, const E& step) {
  if (step.completion) data.completion = step.completion;
}
/// Stores what every end of a step may have: a response and a completion.
template <class E>
void keep_result(RunData& data, const E& step) {
  if (step.response) data.response = *step.response;
  keep_completion(data, step);
}
void note_done(RunData& data, const StepDone& done);
void note_rewound(RunData& data, const StepRewound& step);
void note_end(RunData& data, const StepEnded& end);
void note_dependent(RunData& data, const ExactRun& dependent);
void note_cleaned(RunData& data, const CleanedUp& cleaned);

bool is_delayed(const RunData& data);
bool must_wait(const RunData& data);       // the upstream run has not ended
bool is_unsatisfied(const RunData& data);  // it has, but otherwise than needed
bool has_open_children(const RunData& data);
bool would_satisfy(const RunData& data, const UpstreamEnded& upstream);
/// An earlier run of this id came after the one that has ended.
bool is_for_another(const RunData& data, const UpstreamEnded& upstream);
std::string unsatisfied_reason(const RunData& data);

inline bool is_cancelled(const RunData& data) { return data.control && data.control->cancel; }
inline bool is_to_pause(const RunData& data) { return data.control && data.control->pause; }
inline bool is_to_retry(const RunData& data) { return data.control && data.control->retry; }
inline bool ends_as(const RunData& data, RunState state) {
  return data.control && data.control->ending == state;
}

/// Goes on at the step that somebody has chosen.
void retry(RunData& data, Effects& effects);
/// Ends, and tells those who wait for it.
template <RunState kState>
struct End {
  void operator()(RunData& data, const CleanedUp& cleaned, Effects& effects) const {
    note_cleaned(data, cleaned);
    tell_end(data, kState, effects);
  }
  void operator()(RunData& data, const StepEnded& end, Effects& effects) const {
    note_end(data, end);
    tell_end(data, kState, effects);
  }
  void operator()(RunData& data, const StepDone& done, Effects& effects) const {
    note_done(data, done);
    tell_end(data, kState, effects);
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
        .on<Begin>(fresh, waiting, when([](const RunData& data) { return detail::must_wait(data); }),
                   [](RunData& data, const Begin&, Effects& effects) { detail::watch(data, effects); })
        .on<Begin>(fresh, running,
                   [](RunData& data, const Begin&, Effects& effects) { detail::run_step(data, effects); })
        .on<DelayOver>(delayed, waiting, when([](const RunData& data) { return detail::must_wait(data); }),
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
                               return detail::is_for_another(data, upstream);
                             }))
        .on<UpstreamEnded>(waiting, running, when([](const RunData& data, const UpstreamEnded& upstream) {
                             return detail::would_satisfy(data, upstream);
                           }),
                           [](RunData& data, const UpstreamEnded& upstream, Effects& effects) {
                             detail::note_upstream(data, upstream);
                             detail::run_step(data, effects);
                           })
        .on<UpstreamEnded>(waiting, closing,
                           [](RunData& data, const UpstreamEnded& upstream, Effects& effects) {
                             detail::note_upstream(data, upstream);
                             detail::cancel(data, detail::unsatisfied_reason(data), false, effects);
                           })
        .stay<UpstreamEnded>(
            paused,
            [](RunData& data, const UpstreamEnded& upstream) { detail::note_upstream(data, upstream); })

        // Steps.
        .on<StepDone>(running, closing, when([](const RunData& data) { return detail::is_cancelled(data); }),
                      [](RunData& data, const StepDone& done, Effects& effects) {
                        detail::keep_result(data, done);
                        detail::cancel(data, *data.control->cancel, true, effects);
                      })
        .on<StepDone>(running, running, when([](const RunData& data) { return detail::is_to_retry(data); }),
                      [](RunData& data, const StepDone& done, Effects& effects) {
                        detail::note_done(data, done);
                        detail::retry(data, effects);
                      })
        .on<StepDone>(running, RunState::done,
                      when([](const RunData&, const StepDone& step) { return step.next.empty(); }),
                      detail::End<RunState::done>{})
        .on<StepDone>(running, closing,
                      when([](const RunData&, const StepDone& step) { return step.closes; }),
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::keep_result(data, step);
                        detail::control_of(data).ending = RunState::done;
                        detail::clean_up(data, step.next, effects);
                      })
        .on<StepDone>(running, paused, when([](const RunData& data) { return detail::is_to_pause(data); }),
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::note_done(data, step);
                        detail::hold(data, effects);
                      })
        .on<StepDone>(running, joining, when([](const RunData& data, const StepDone& step) {
                        if (step.children.empty()) return false;
                        auto after = data;
                        detail::note_done(after, step);
                        return detail::has_open_children(after);
                      }),
                      // Its children may need the place; it waits for its turn again afterwards.
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::note_done(data, step);
                        effects.leave_queue();
                      })
        .on<StepDone>(running, running,
                      [](RunData& data, const StepDone& step, Effects& effects) {
                        detail::note_done(data, step);
                        effects.work(data.step, Begin{});
                      })
        .on<StepRewound>(running, closing,
                         when([](const RunData& data) { return detail::is_cancelled(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::keep_result(data, step);
                           detail::cancel(data, *data.control->cancel, true, effects);
                         })
        .on<StepRewound>(running, running,
                         when([](const RunData& data) { return detail::is_to_retry(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::note_rewound(data, step);
                           detail::retry(data, effects);
                         })
        .on<StepRewound>(running, paused, when([](const RunData& data) { return detail::is_to_pause(data); }),
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::note_rewound(data, step);
                           detail::hold(data, effects);
                         })
        .on<StepRewound>(running, running,
                         [](RunData& data, const StepRewound& step, Effects& effects) {
                           detail::note_rewound(data, step);
                           effects.work(data.step, Begin{});
                         })
        // What was asked for goes before an end that may only be the answer to it.
        .on<StepEnded>(running, closing, when([](const RunData& data) { return detail::is_cancelled(data); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::keep_result(data, step);
                         detail::cancel(data, *data.control->cancel, true, effects);
                       })
        .on<StepEnded>(running, running, when([](const RunData& data) { return detail::is_to_retry(data); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::keep_result(data, step);
                         detail::retry(data, effects);
                       })
        .on<StepEnded>(running, closing,
                       when([](const RunData&, const StepEnded& step) { return !step.next.empty(); }),
                       [](RunData& data, const StepEnded& step, Effects& effects) {
                         detail::note_end(data, step);
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
                         when([](const RunData& data) { return detail::is_cancelled(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::keep_completion(data, step);
                           detail::cancel(data, *data.control->cancel, true, effects);
                         })
        .on<StepStopped>(running, running,
                         when([](const RunData& data) { return detail::is_to_retry(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::keep_completion(data, step);
                           detail::retry(data, effects);
                         })
        // The pause was taken back meanwhile.
        .on<StepStopped>(running, running,
                         when([](const RunData& data) { return !detail::is_to_pause(data); }),
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::keep_completion(data, step);
                           effects.work(data.step, Begin{});
                         })
        .on<StepStopped>(running, paused,
                         [](RunData& data, const StepStopped& step, Effects& effects) {
                           detail::keep_completion(data, step);
                           detail::hold(data, effects);
                         })
        .stay<StepFailed>(running,
                          [](RunData& data, const StepFailed& step) { detail::keep_completion(data, step); })

        // Children.
        .on<ChildEnded>(joining, running, when([](const RunData& data, const ChildEnded& child) {
                          auto after = data;
                          detail::note_child(after, child);
                          return !detail::has_open_children(after);
                        }),
                        [](RunData& data, const ChildEnded& child, Effects& effects) {
                          detail::note_child(data, child);
                          detail::run_step(data, effects);
                        })
        .stay<ChildEnded>(from(delayed, waiting, running, joining, paused, closing),
                          [](RunData& data, const ChildEnded& child) { detail::note_child(data, child); })
        .stay<Watch>(from(delayed, waiting, running, joining, paused, closing),
                     [](RunData& data, const Watch& watch) { detail::note_dependent(data, watch.dependent); })

        // What people ask for.
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
        .on<Resume>(paused, waiting, when([](const RunData& data) { return detail::must_wait(data); }),
                    [](RunData& data, const Resume&, Effects& effects) { detail::watch(data, effects); })
        .on<Resume>(paused, closing, when([](const RunData& data) { return detail::is_unsatisfied(data); }),
                    [](RunData& data, const Resume&, Effects& effects) {
                      detail::cancel(data, detail::unsatisfied_reason(data), false, effects);
                    })
        .on<Resume>(paused, joining,
                    when([](const RunData& data) { return detail::has_open_children(data); }))
        .on<Resume>(paused, running,
                    [](RunData& data, const Resume&, Effects& effects) { detail::run_step(data, effects); })
        .stay<Resume>(running, when([](const RunData& data) { return detail::is_to_pause(data); }),
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
                         detail::note_cleaned(data, cleaned);
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
