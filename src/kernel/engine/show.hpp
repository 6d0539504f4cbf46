// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What is stored, in the form in which it is shown. For the engine, and for tools that read a store without
/// one.

#include <string>
#include <vector>

#include "kernel/engine/records.hpp"
#include "pawl/instance.hpp"
#include "store/store.hpp"

namespace pawl {

std::vector<TimerStatus> timers_of(const Extras& extras);
std::vector<WorkStatus> work_of(const Extras& extras);

/// The cursor goes on behind the entry. The key is the entry's own, which only the first of a generation has.
LogEvent to_event(Entry entry, std::string cursor);

}  // namespace pawl
