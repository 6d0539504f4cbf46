// SPDX-License-Identifier: Apache-2.0
#pragma once

// What pawl_sim runs. A scenario builds a small world in the simulation it is given, lets it work and crash,
// and returns an error or throws when an invariant does not hold.

#include "pawl/sim.hpp"

namespace pawl::scenarios {

/// A counter that writes ahead to a disk: what was acknowledged is counted once, never lost and never
/// doubled.
Result<void> counter(sim::Simulation& sim);
/// The same, but it answers before the disk has synced. Only to show that this is found.
Result<void> counter_that_answers_early(sim::Simulation& sim);

/// Two processes with bad clocks take turns as the owner of a lease: never both at once.
Result<void> lease(sim::Simulation& sim);
/// The same, but the challenger leaves no margin for drifting clocks. Only to show that this is found.
Result<void> lease_without_margin(sim::Simulation& sim);

/// The durable engine on a simulated disk: requests, transactions, work, timers, messages and application
/// rows happen exactly once, whatever crashes.
Result<void> engine(sim::Simulation& sim);

/// Work and places in lines, also those that are created and gone within one batch: no permit is lost, and
/// all work of instances that go on runs.
Result<void> lifecycle(sim::Simulation& sim);

/// Keys that are used again after retention has forgotten their instances: messages arrive once each, request
/// ids name one piece of work, the store opens again and reads find no damage.
Result<void> reuse(sim::Simulation& sim);

/// A store that fails in every way it may: no message, timer, result or permit is lost by that.
Result<void> faults(sim::Simulation& sim);

/// A wall clock that jumps both ways: no wait becomes longer, and nothing recent is cut or forgotten.
Result<void> clock(sim::Simulation& sim);

/// A lease that runs out and comes back, and owners that replace each other while callers wait: everybody is
/// answered, also where entries are as large as they may be, and nothing new begins on a former owner.
Result<void> ownership(sim::Simulation& sim);

/// Readers that are all busy with queries that never end: commits, reads and work go on, and closing ends
/// them.
Result<void> queries(sim::Simulation& sim);

/// Flows: every run ends, in its order and within its queue, whatever crashes and whoever meddles.
Result<void> flow(sim::Simulation& sim);

/// Workers: a tree becomes as it is desired, and no order is lost or runs beside itself, whatever crashes.
Result<void> supervise(sim::Simulation& sim);

}  // namespace pawl::scenarios
