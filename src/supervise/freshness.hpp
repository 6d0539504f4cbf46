// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Deadlines and missing observations, as pure functions.

#include <vector>

#include "supervise/decision.hpp"

namespace pawl::supervise {

/// The escalation of missing observations: a late collection is asked to stop; then collecting is restarted;
/// then the worker is restarted. A worker whose collection is still queued becomes stale, but is not
/// restarted: the pool is too small, and the worker is not at fault.
std::vector<Action> check_freshness(const NodeState& node, const DecisionContext& context);

/// The next time at which something is due for a worker that does not change; `Instant::max()` for never.
Instant next_deadline(const NodeState& node, const DecisionContext& context);

}  // namespace pawl::supervise
