// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The nouns of the `pawl` command. Each adds its verbs to the app; a verb that was given leaves its exit
/// code in `status`.

#include <CLI/CLI.hpp>

namespace pawl::cli {

void add_explain(CLI::App& app, int& status);
void add_migrate(CLI::App& app, int& status);
void add_config(CLI::App& app, int& status);
void add_serve(CLI::App& app, int& status);
void add_store(CLI::App& app, int& status);
/// The verbs that systems bring along.
void add_systems(CLI::App& app, int& status);

}  // namespace pawl::cli
