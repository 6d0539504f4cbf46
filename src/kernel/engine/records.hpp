// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a head carries besides state and data, stored as JSON in the column `extra`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/time.hpp"

namespace pawl {

struct TimerRecord {
  std::string name;
  std::int64_t generation = 0;  // the log time at which it was set: firing consumes exactly this one
  Time due{};
  Time set{};  // limits the wait to due - set if the clock jumps
  std::string event;
  std::string payload;
  bool operator==(const TimerRecord&) const = default;
};

/// How work that is to end is stopped. There is no further attempt.
enum class WorkStop : std::uint8_t {
  when_idle,  // a running attempt may finish
  now,        // a running attempt is asked to stop
};

struct WorkRecord {
  std::int64_t number = 0;  // unique in the store, forever: makes external calls idempotent
  std::string name;
  std::string payload;
  Time asked{};               // determines the order in the queue
  std::uint32_t attempt = 0;  // executions started, including the current one
  std::optional<Time> not_before{};
  std::optional<Time> failed_at{};  // limits the wait to not_before - failed_at if the clock jumps
  std::optional<WorkStop> stop{};
  bool operator==(const WorkRecord&) const = default;
};

struct MessageRecord {
  std::int64_t number = 0;
  std::string machine;
  std::string key;
  std::string event;
  std::string payload;
  bool operator==(const MessageRecord&) const = default;
};

/// The queue that the instance is in; its work waits until it is admitted.
struct QueueRecord {
  std::string pool;
  std::int32_t priority = 0;
  Time asked{};
  bool operator==(const QueueRecord&) const = default;
};

struct Extras {
  std::vector<TimerRecord> timers{};
  std::vector<WorkRecord> work{};
  std::vector<MessageRecord> outbox{};
  std::optional<QueueRecord> queue{};

  bool empty() const { return timers.empty() && work.empty() && outbox.empty() && !queue; }
  bool operator==(const Extras&) const = default;
};

/// Written with every entry of an instance that has extras, so empty parts are left out.
template <>
struct Codec<Extras> {
  static void write(JsonWriter& out, const Extras& extras);
  static bool read(JsonValue in, Extras& out, DecodeFailure& why);
};

}  // namespace pawl
