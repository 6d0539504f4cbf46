// SPDX-License-Identifier: Apache-2.0
#pragma once

/// images: the status of a run of the download, unpack or activate flow.

#include <string>

#include "pawl/verify.hpp"

namespace seeds::images {

enum class Run { pending, running, complete, handoff, aborted, failed, canceled };
enum class Blame { none, system, user };

struct Begin {};
struct StepFailed {
  std::string error = "unknown";
};
struct Finish {};
struct Handoff {};
struct Abort {};
struct Fail {
  Blame blame = Blame::system;
};
struct Cancel {};

struct RunData {
  int retries = 0;
  std::string last_error;
  Blame blame = Blame::none;
};

/// Each way to end is a state of its own. A plain error keeps the run running: the step is retried.
inline constexpr auto run =
    pawl::machine<Run, RunData>("images_run")
        .initial(Run::pending)
        .on<Begin>(Run::pending, Run::running)
        .stay<StepFailed>(Run::running,
                          [](RunData& data, const StepFailed& failed) {
                            ++data.retries;
                            data.last_error = failed.error;
                          })
        .on<Finish>(Run::running, Run::complete)
        .on<Handoff>(Run::running, Run::handoff)
        .on<Abort>(Run::running, Run::aborted)
        .on<Fail>(Run::running, Run::failed, [](RunData& data, const Fail& fail) { data.blame = fail.blame; })
        .on<Cancel>(pawl::from(Run::pending, Run::running), Run::canceled)
        .terminal(Run::complete, Run::handoff, Run::aborted, Run::failed, Run::canceled);
static_assert(pawl::verified<run>);

}  // namespace seeds::images
