// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Decides what a command does to an instance. Pure: no clock, no store, no thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/engine/heads.hpp"
#include "kernel/engine/records.hpp"
#include "kernel/engine/registry.hpp"
#include "pawl/effects.hpp"
#include "pawl/error.hpp"
#include "pawl/instance_id.hpp"
#include "pawl/sql.hpp"
#include "store/store.hpp"

namespace pawl {

/// An instance while a batch is being decided: its newest state, durable or not. The texts are views of the
/// request or of the head; the request outlives the batch and its answers.
struct Draft {
  InstanceId id;
  bool exists = false;
  std::uint16_t machine = 0;
  std::uint16_t state = 0;
  std::int64_t generation = 1;
  std::int64_t version = 0;
  Seq seq = 0;
  Time created_at{};
  Time at{};
  std::string_view key;
  std::string_view partition;
  HeadData data{};
  Extras extras{};
  const Extras* published = nullptr;  // the extras once the batch is durable; null if there are none
  bool newest = true;                 // false: a later transaction of the batch continues from it
};

/// What a transition is to record besides the draft.
struct Change {
  EntryKind kind = EntryKind::fired;
  std::string_view event;    // of the definition, or `own_event`
  std::string_view payload;  // of the request, or `own_payload`
  CompactText own_event;
  CompactText own_payload;
  std::vector<Sql> sql;
  std::vector<std::int64_t> new_work;  // numbers of the work this change asks for
  bool enters_queue = false;
};

// Commands for an instance. Each is a value; `decide` below turns it into a change of the draft.

struct SendEvent {
  std::size_t event = 0;
  std::shared_ptr<const void> typed;  // the event itself; if null, the payload is decoded
  std::string payload;
  std::optional<std::int64_t> expected_version;
};
struct CreateInstance {
  std::string data;
  std::string partition;
  std::shared_ptr<const void> value;  // the decoded data, if available
  std::optional<SendEvent> first{};   // its first event, in the same entry
};
/// Fires a due timer. The timer is consumed even if its event is refused.
struct FireTimer {
  std::string name;
  std::int64_t generation = 0;
  std::optional<Error> refused{};  // by the store at the first try
};
/// Starts an attempt at a piece of work.
struct BeginWork {
  std::int64_t number = 0;
  std::uint32_t after = 0;  // the number of the attempt before
};
/// Ends work that has succeeded; `event` is sent in the same entry.
struct FinishWork {
  std::int64_t number = 0;
  std::uint32_t attempt = 0;
  std::optional<EventValue> event;
  std::optional<Error> refused{};
};
/// Records a failed attempt. With a `delay` the work is retried after it; without one it is given up. `event`
/// goes to the instance in the same entry.
struct FailWork {
  std::int64_t number = 0;
  std::uint32_t attempt = 0;
  Error error;
  std::optional<Duration> delay;
  std::optional<EventValue> event;
  std::optional<Error> refused{};
};
/// Records that a message of this instance was delivered or finally refused.
struct AcknowledgeMessage {
  std::int64_t number = 0;
  std::optional<Error> refused;
};
/// Applies the recovery mapping after a restart.
struct RecoverInstance {};

using Command = std::variant<CreateInstance, SendEvent, FireTimer, BeginWork, FinishWork, FailWork,
                             AcknowledgeMessage, RecoverInstance>;

/// Applies a command to the draft. `now` is greater than the time of every earlier entry; the entry's own
/// time may be slightly greater, because each number that it assigns is a time. Empty: the command is
/// obsolete (the timer was replaced, the work was cancelled) and nothing is recorded. After an error or an
/// empty result the draft must not be used.
Result<std::optional<Change>> decide(const Registry& registry, Draft& draft, const Command& command,
                                     Time now);

/// Changes a command that consumes a timer or work so that it records `refused` instead of sending the event
/// that the store has refused. False: the command has no such event.
bool refuse(Command& command, const Error& refused);

}  // namespace pawl
