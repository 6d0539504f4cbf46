// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/show.hpp"

#include <utility>

#include "pawl/names.hpp"

namespace pawl {

std::vector<TimerStatus> timers_of(const Extras& extras) {
  std::vector<TimerStatus> timers;
  for (const auto& timer : extras.timers) timers.push_back({timer.name, timer.due, timer.event});
  return timers;
}

std::vector<WorkStatus> work_of(const Extras& extras) {
  std::vector<WorkStatus> works;
  for (const auto& work : extras.work)
    works.push_back({work.number, work.name, work.attempt, work.not_before});
  return works;
}

LogEvent to_event(Entry entry, std::string cursor) {
  return {.seq = entry.seq,
          .cursor = std::move(cursor),
          .at = entry.at,
          .kind = std::string(enum_name(entry.kind)),
          .id = entry.id,
          .machine = std::move(entry.machine),
          .key = std::move(entry.key),
          .event = std::move(entry.event),
          .payload = std::move(entry.payload),
          .state = std::move(entry.state),
          .version = entry.version,
          .generation = entry.generation,
          .data = std::move(entry.data),
          .finished = entry.finished};
}

}  // namespace pawl
