// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shows runs of flows to people.

#include <string>

#include "cli/output.hpp"
#include "pawl/json.hpp"

namespace pawl::cli {

bool run_finished(JsonValue run);
/// The exit code for a finished run: 0 if it is done or handed off, else `kRunEnded`.
int run_exit_code(JsonValue run);
Style run_style(JsonValue run);

void show_runs(JsonValue page);
void show_run(JsonValue run);
/// The spans of a timeline as a table.
void show_timeline(JsonValue timeline);
/// One span as a line, for a live timeline.
std::string span_line(JsonValue span);

}  // namespace pawl::cli
