// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The verbs and nouns of the `pawl` command. Each adds itself to the app; what was given leaves its exit
/// code in `status`. Only the sources that include this know CLI11.

#include <CLI/CLI.hpp>

#include "cli/manual.hpp"

namespace pawl::cli {

void add_explain(CLI::App& app, int& status);
void add_migrate(CLI::App& app, int& status);
void add_config(CLI::App& app, int& status);
void add_serve(CLI::App& app, int& status);
void add_store(CLI::App& app, int& status);
/// The verbs that systems bring along.
void add_systems(CLI::App& app, int& status);
/// machines, ls, get, history, timers, pools, stats, diagram, tail, top.
void add_reading(CLI::App& app, int& status);
/// create, send, backup, check, bench.
void add_changing(CLI::App& app, int& status);
/// runs and run.
void add_runs(CLI::App& app, int& status);
/// login, token, user.
void add_access(CLI::App& app, int& status);
/// completion and man, which describe the app that they are part of.
void add_manual(CLI::App& app, int& status);

/// The app as data, for completions and the manual page.
Command describe(const CLI::App& app);

/// The words up to the verb that was given: "pawl store info".
std::string verb_path(const CLI::App& app);
/// The message for an unknown verb, with a suggestion; empty if the verb is known.
std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv);
/// The same for an unknown option.
std::string unknown_option(const CLI::App& app);

}  // namespace pawl::cli
