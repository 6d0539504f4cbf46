// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file that says which workers there should be.
///
///     variables:
///       global: {site: north}
///     children:
///       - name: pump-1
///         workerType: pump
///         location: [acme, north, hall-2]         # gives {{ .location_path }}
///         stateMapping: {Running: run, Stopped: park}
///         userSpec:
///           config: |
///             url: tcp://{{ .IP }}:{{ .PORT }}
///           variables:
///             user: {IP: 10.0.0.7, PORT: 1883}
///
///     const auto tree = pawl::workers::read_tree(text, "site.yaml", &types);
///     if (!tree) fmt::print("{}\n", tree.error().message());    // every mistake, each with its line
///
/// `config` may also be a mapping, which is kept as JSON; a text in it may be a template, too, and stays a
/// text. `enabled: false` parks a worker. `children` must be there, so that a file that was cut off does not
/// remove every worker: write `children: []` for none. The top may have a `location`, too; a child's levels
/// stand before it. States are written in any letters; what is read has their proper spelling. Functions
/// without state; safe concurrently.

#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"
#include "pawl/worker_types.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

/// Without types, the types of workers and the states that mappings lead to are not checked. Error:
/// `config_invalid` with every mistake, as `to_error` says.
Result<TreeSpec> read_tree(std::string_view text, std::string_view file, const WorkerTypes* types);

/// The mistakes, in the order of their lines; none where `read_tree` would read it. A text that is not YAML
/// has one.
std::vector<ConfigProblem> check_tree(std::string_view text, std::string_view file, const WorkerTypes* types);

/// A file that `read_tree` reads as the same tree; the same text for the same tree. What is no tree that
/// could be applied is written as well as it can be: bytes that are not UTF-8 as U+FFFD, a value that is not
/// JSON as a text.
std::string write_tree(const TreeSpec& tree);

}  // namespace pawl::workers
