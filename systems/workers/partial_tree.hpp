// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The part of a file that can be applied although the file has mistakes: a mistake affects no other worker.
///
///     const auto read = read_partial_tree(text, "site.yaml", types, supervisor.applied()->first);
///     for (const auto& problem : read.problems) log.warn(describe(problem));
///     if (read.tree) supervisor.apply(*read.tree);

#include <optional>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

struct PartialTree {
  /// Children with mistakes keep their present specification, or are left out if they are new. Empty if a
  /// mistake is outside of all children.
  std::optional<TreeSpec> tree{};
  std::vector<ConfigProblem> problems{};  ///< by line
};

/// Also checks the configuration of each worker: its type must be able to read it and know every key in it.
PartialTree read_partial_tree(std::string_view text, std::string_view file, const WorkerTypes& types,
                              const TreeSpec& now);

}  // namespace pawl::workers
