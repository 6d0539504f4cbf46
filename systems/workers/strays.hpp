// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Clears away what removed workers have left: processes that no worker has.
///
///     Strays strays(keeper, notes, log, attached.unknown);
///     strays.look(supervisor.paths());              // now and then

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pawl/log.hpp"
#include "workers/process/keeper.hpp"

namespace pawl::workers {

/// Externally synchronised.
class Strays {
 public:
  /// Those of `left_alone` belong to workers that this program does not know, and are not touched. The keeper
  /// must live as long.
  Strays(const ProcessKeeper& keeper, std::string notes, Logger log,
         const std::vector<std::string>& left_alone)
      : keeper_(keeper),
        notes_(std::move(notes)),
        log_(std::move(log)),
        left_alone_(left_alone.begin(), left_alone.end()) {}

  /// Ends each process that no worker has at this look and had at the last: one that is seen twice was not
  /// just about to be taken up.
  void look(const std::vector<std::string>& workers);

 private:
  const ProcessKeeper& keeper_;
  std::string notes_;
  Logger log_;
  std::set<std::string, std::less<>> left_alone_;
  std::set<std::string, std::less<>> seen_{};
};

}  // namespace pawl::workers
