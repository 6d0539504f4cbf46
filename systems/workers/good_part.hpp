// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What of a file can be applied although there are mistakes in it: a mistake disturbs no other worker.
///
///     const auto read = take_good(text, "site.yaml", types, supervisor.applied()->first);
///     for (const auto& problem : read.problems) log.warn(describe(problem));
///     if (read.tree) supervisor.apply(*read.tree);

#include <optional>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"
#include "workers/config/problem.hpp"

namespace pawl::workers {

struct GoodPart {
  /// Children with mistakes are in it as they are at present, or not at all where they are new. Nothing where
  /// a mistake is not within a child: then it is not known what is meant.
  std::optional<TreeSpec> tree{};
  std::vector<ConfigProblem> problems{};  ///< in the order of their lines
};

/// Looks at the configuration of each worker, too: whether its type can read it, and knows every key in it.
GoodPart take_good(std::string_view text, std::string_view file, const WorkerTypes& types,
                   const TreeSpec& now);

}  // namespace pawl::workers
