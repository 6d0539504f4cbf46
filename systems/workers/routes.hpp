// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pawl/engine.hpp"
#include "pawl/http.hpp"
#include "pawl/supervisor.hpp"
#include "workers/process/manager.hpp"
#include "workers/tree_file.hpp"

namespace pawl::workers {

/// What the routes serve. Everything must outlive the routes.
struct WorkersView {
  Supervisor& supervisor;
  Engine& engine;
  TreeFile& file;
  Runtime& runtime;                         ///< the clock of the engine
  const ProcessManager* manager = nullptr;  ///< null if there is no shim
};

/// /v1/workers and /v1/worker-tree.
std::vector<http::Route> worker_routes(const WorkersView& view);

}  // namespace pawl::workers
