// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The file with the desired workers.
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
/// `config` may also be a mapping, which is stored as JSON; texts in it may be templates and stay texts.
/// `enabled: false` parks a worker. `children` is required, so that a truncated file does not remove every
/// worker: write `children: []` for none. The top may have a `location`, too; its levels come before those of
/// a child. The case of states does not matter. Functions without state; safe concurrently.

#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"
#include "pawl/worker_types.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

/// If `types` is null, worker types and the states in mappings are not checked, and no field is known to be a
/// template of the children. Error: `config_invalid` with every mistake, see `to_error`.
Result<TreeSpec> read_tree(std::string_view text, std::string_view file, const WorkerTypes* types);

/// The mistakes by line; none if `read_tree` succeeds. A text that is not YAML has one.
std::vector<ConfigProblem> check_tree(std::string_view text, std::string_view file, const WorkerTypes* types);

/// Writes a file that `read_tree` reads as the same tree. Deterministic. Invalid parts of a tree are
/// replaced: bytes that are not UTF-8 by U+FFFD, a value that is not JSON by a text.
std::string write_tree(const TreeSpec& tree);

}  // namespace pawl::workers
