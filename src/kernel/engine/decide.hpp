// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Deciding: what an operation makes of an instance. Pure: no clock, no store, no thread.

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

/// An instance while a batch is being decided: the newest head, durable or not. Its texts are views of the
/// request or of the head; those of the request outlive the batch and its answers.
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
  const Extras* published = nullptr;  // where the extras are once the batch is durable; none: there are none
  bool newest = true;                 // false: a later transaction of the batch goes on from it
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

// What may happen to an instance. Each is a value; `decide` below turns it into a change of the draft.

struct SendEvent {
  std::size_t event = 0;
  std::shared_ptr<const void> typed;  // else the payload is decoded
  std::string payload;
  std::optional<std::int64_t> expected_version;
};
struct CreateInstance {
  std::string data;
  std::string partition;
  std::shared_ptr<const void> value;  // what the data is the text of, if it is at hand
  std::optional<SendEvent> first{};   // its first event, in the same entry
};
/// A timer is due; it is consumed whether or not its event is accepted.
struct FireTimer {
  std::string name;
  std::int64_t generation = 0;
  std::optional<Error> refused{};  // by the store, when it was tried
};
/// An attempt of a piece of work begins.
struct BeginWork {
  std::int64_t number = 0;
  std::uint32_t after = 0;  // the attempts before it
};
/// An attempt has ended well; `event` is consumed together with the work.
struct FinishWork {
  std::int64_t number = 0;
  std::uint32_t attempt = 0;
  std::optional<EventValue> event;
  std::optional<Error> refused{};
};
/// An attempt has failed: with `delay` it is tried again after it, without it the work is given up. `event`
/// goes to the instance in the same entry.
struct FailWork {
  std::int64_t number = 0;
  std::uint32_t attempt = 0;
  Error error;
  std::optional<Duration> delay;
  std::optional<EventValue> event;
  std::optional<Error> refused{};
};
/// A message of this instance has been delivered, or refused for good.
struct AcknowledgeMessage {
  std::int64_t number = 0;
  std::optional<Error> refused;
};
/// The owner restarted.
struct RecoverInstance {};

using Happening = std::variant<CreateInstance, SendEvent, FireTimer, BeginWork, FinishWork, FailWork,
                               AcknowledgeMessage, RecoverInstance>;

/// Applies what happened to the draft. `now` is greater than the time of every entry before; the entry's own
/// time may be a little greater still, because each number it gives out is a time. On an error the draft is
/// spent. Nothing: what was to happen has happened already (a timer that was replaced, work that was
/// cancelled), nothing is to be recorded, and the draft is spent, too.
Result<std::optional<Change>> decide(const Registry& registry, Draft& draft, const Happening& happening,
                                     Time now);

/// Makes what happens, if it consumes a timer or work by an event, do so without the event, which the store
/// has refused; the refusal is recorded. False: there is no event to leave out.
bool refuse(Happening& happening, const Error& refused);

}  // namespace pawl
