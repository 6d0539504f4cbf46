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
  Time set{};  // a clock that jumps cannot make the wait longer than due - set
  std::string event;
  std::string payload;
  bool operator==(const TimerRecord&) const = default;
};

/// Work that is not wanted any more ends without another attempt.
enum class WorkStop : std::uint8_t {
  when_idle,  // an attempt that runs may end by itself
  now,        // an attempt that runs is asked to stop
};

struct WorkRecord {
  std::int64_t number = 0;  // unique in the store, for ever: it makes calls to the outside idempotent
  std::string name;
  std::string payload;
  Time asked{};               // the order of this is the order in line
  std::uint32_t attempt = 0;  // executions begun, the present one included
  std::optional<Time> not_before{};
  std::optional<Time> failed_at{};  // a clock that jumps cannot make the wait longer than not_before - this
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

/// The line in which the instance stands; its work waits until it is its turn.
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

/// Every entry of an instance that has some carries them, so what is empty is not written.
template <>
struct Codec<Extras> {
  static void write(JsonWriter& out, const Extras& extras);
  static bool read(JsonValue in, Extras& out, DecodeFailure& why);
};

}  // namespace pawl
