// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Converts stored records to the public types. For the engine, and for tools that read a store without one.

#include <string>
#include <vector>

#include "kernel/engine/records.hpp"
#include "pawl/instance.hpp"
#include "store/store.hpp"

namespace pawl {

std::vector<TimerStatus> timers_of(const Extras& extras);
std::vector<WorkStatus> work_of(const Extras& extras);

/// `cursor` points behind the entry. The key is that of the entry: empty unless it starts a generation.
LogEvent to_event(Entry entry, std::string cursor);

}  // namespace pawl
