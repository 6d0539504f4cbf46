// SPDX-License-Identifier: Apache-2.0
#pragma once

/// All worker types that the product brings along.
///
///     pawl::WorkerTypes types;
///     pawl::workers::add_worker_types(types, {});

#include "pawl/worker_types.hpp"
#include "workers/types/services.hpp"

namespace pawl::workers {

void add_worker_types(WorkerTypes& types, const TypeServices& services);

}  // namespace pawl::workers
