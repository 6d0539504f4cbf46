// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/decide.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace pawl {
namespace {

using Decision = Result<std::optional<Change>>;

/// An error's text as it is recorded. A handler may return megabytes, but the record must fit into an entry,
/// or else the work could never end.
std::string recorded(const Error& error) {
  constexpr std::size_t kMost = 4096;
  auto text = error.to_string();
  if (text.size() <= kMost) return text;
  auto end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;  // not inside a character
  return text.substr(0, end) + "…";
}

/// One decision about one draft. Moves the extras out of the draft and back when it records the change.
class Decider {
 public:
  Decider(const Registry& registry, Draft& draft, Time now)
      : registry_(registry), draft_(draft), now_(now), newest_(now), extras_(std::move(draft.extras)) {}

  Decision operator()(const CreateInstance& create);
  Decision operator()(const SendEvent& send);
  Decision operator()(const FireTimer& fire);
  Decision operator()(const BeginWork& begin);
  Decision operator()(const FinishWork& finish);
  Decision operator()(const FailWork& failed);
  Decision operator()(const AcknowledgeMessage& acknowledge);
  Decision operator()(const RecoverInstance& recover);

 private:
  const Definition& definition() const { return registry_.definition(draft_.machine); }
  std::string name() const {
    return fmt::format("{} \"{}\"", registry_.machine_name(draft_.machine), draft_.key);
  }

  Result<void> check_alive() const;
  Result<void> check_new(const CreateInstance& create) const;
  Result<void> take_event(std::size_t event, const void* typed, std::string_view payload);
  Result<void> collect(std::vector<effect::Any> effects);
  Result<void> add(effect::SetTimer& set);
  Result<void> add(effect::Work& work);
  Result<void> add(effect::EnterQueue& enter);
  Result<void> add(effect::Message& message);
  Result<void> check_text(std::string_view what, std::string_view text) const;
  void stop_work(const effect::StopWork& stop);
  Result<std::size_t> event_of_type(std::string_view type) const;
  bool drop_work(std::int64_t number, std::uint32_t attempt);
  void set_state(std::size_t state);
  Change record(EntryKind kind, std::string_view event, std::string_view payload);
  Change record_own(EntryKind kind, std::string_view event, std::string_view payload);
  Result<void> try_event(const Result<std::size_t>& event, const EventValue& value,
                         const std::optional<Error>& refused);
  Change consume(EntryKind kind, const std::string& name, const Result<std::size_t>& event,
                 const EventValue& value, const std::optional<Error>& refused, const Error* cause);
  Result<std::int64_t> next_number();

  const Registry& registry_;
  Draft& draft_;
  Time now_;     // greater than the time of every entry before
  Time newest_;  // the greatest time that was given out as a number; the entry's own time
  Extras extras_;
  Change change_;
  std::optional<std::size_t> next_state_;
  std::optional<std::string> next_data_;
  std::shared_ptr<const void> next_value_;
};

Result<void> Decider::check_alive() const {
  if (!draft_.exists) {
    return fail(Code::unknown_instance, fmt::format("there is no {}", name()),
                {{"key", std::string(draft_.key)}});
  }
  if (draft_.state >= Registry::kUnknown) {
    return fail(Code::unknown_state,
                fmt::format("{} is in the state \"{}\", which this program does not know", name(),
                            registry_.state_name(draft_.machine, draft_.state)),
                {{"key", std::string(draft_.key)}});
  }
  return {};
}

/// Fires the event and keeps the new state, data and effects.
Result<void> Decider::take_event(std::size_t event, const void* typed, std::string_view payload) {
  const auto& fired = definition().events[event];
  Effects effects(now_, definition().name, draft_.key);
  const Definition::Data data{draft_.data.text(), draft_.data.value()};
  PAWL_TRY(auto step, typed != nullptr ? fired.fire(draft_.state, data, typed, &effects)
                                       : fired.fire_json(draft_.state, data, payload, &effects));
  if (step.verdict != Verdict::fired) {
    return fail(definition().refuse(step.verdict, draft_.key, draft_.state, event));
  }
  PAWL_TRY(auto collected, effects.take());
  PAWL_CHECK(collect(std::move(collected)));
  next_data_ = std::move(step.data);
  next_value_ = std::move(step.value);
  set_state(step.state);
  return {};
}

Result<std::size_t> Decider::event_of_type(std::string_view type) const {
  const auto& events = definition().events;
  const auto found = std::ranges::find(events, type, &Definition::Event::type);
  if (found != events.end()) return static_cast<std::size_t>(found - events.begin());
  return fail(Code::unknown_event,
              fmt::format("{}: no transition takes the event {}", definition().name, type));
}

void Decider::set_state(std::size_t state) {
  next_state_ = state;
  if (!definition().states[state].terminal) return;
  extras_.timers.clear();
  extras_.work.clear();
  extras_.queue.reset();
  change_.new_work.clear();
  change_.enters_queue = false;
}

/// Refuses a machine's invalid text here, where the refusal concerns one caller only. In the store it would
/// fail the whole batch.
Result<void> Decider::check_text(std::string_view what, std::string_view text) const {
  if (is_utf8(text)) return {};
  return fail(Code::invalid_argument, fmt::format("{}: a {} is not UTF-8", name(), what));
}

Result<void> Decider::add(effect::SetTimer& set) {
  PAWL_CHECK(check_text("timer's name", set.name));
  PAWL_TRY(const auto event, event_of_type(set.event.type));
  const auto after = std::clamp(set.after, Duration::zero(), Duration(std::chrono::years(100)));
  std::erase_if(extras_.timers, [&](const TimerRecord& timer) { return timer.name == set.name; });
  extras_.timers.push_back({.name = std::move(set.name),
                            .generation = now_.time_since_epoch().count(),
                            .due = now_ + after,
                            .set = now_,
                            .event = definition().events[event].name,
                            .payload = std::move(set.event.payload)});
  return {};
}

Result<void> Decider::add(effect::Work& work) {
  const auto& works = registry_.entry(draft_.machine).works;
  if (!works.contains(work.name)) {
    std::vector<std::string_view> known;
    for (const auto& [name, handler] : works) known.push_back(name);
    return fail(Code::unknown_name, fmt::format("{} has no handler for work \"{}\"; registered: {}",
                                                definition().name, work.name, fmt::join(known, ", ")));
  }
  PAWL_TRY(const auto number, next_number());
  change_.new_work.push_back(number);
  extras_.work.push_back({number, std::move(work.name), std::move(work.payload), now_});
  return {};
}

Result<void> Decider::add(effect::EnterQueue& enter) {
  if (!registry_.pools().contains(enter.pool)) {
    return fail(Code::unknown_pool,
                fmt::format("{}: no permit pool \"{}\"; known: {}", name(), enter.pool.substr(0, 64),
                            fmt::join(registry_.pools(), ", ")),
                {{"pool", enter.pool.substr(0, 64)}});
  }
  if (extras_.queue && extras_.queue->pool != enter.pool) {
    return fail(Code::invalid_argument,
                fmt::format("{} is in the queue \"{}\"; it must leave it before it enters \"{}\"", name(),
                            extras_.queue->pool, enter.pool));
  }
  if (extras_.queue) return {};
  extras_.queue = QueueRecord{std::move(enter.pool), enter.priority, now_};
  change_.enters_queue = true;
  return {};
}

void Decider::stop_work(const effect::StopWork& stop) {
  for (auto& work : extras_.work) {
    if (work.name != stop.name) continue;
    if (stop.interrupt || !work.stop) work.stop = stop.interrupt ? WorkStop::now : WorkStop::when_idle;
  }
}

/// A number for work or a message: a log time that is never used again, not even by an instance of the same
/// key after this one was forgotten. It makes external calls idempotent and fits into a double.
Result<std::int64_t> Decider::next_number() {
  constexpr std::int64_t kPerChange = 1023;
  if ((newest_ - now_).count() == kPerChange) {
    return fail(Code::too_large,
                fmt::format("{}: one transition asks for more than {} pieces of work and messages", name(),
                            kPerChange));
  }
  newest_ += Duration(1);
  return newest_.time_since_epoch().count();
}

/// A receiver that does not exist refuses, like one that does not take the event.
Result<void> Decider::add(effect::Message& message) {
  PAWL_CHECK(check_text("message's machine", message.machine));
  PAWL_CHECK(check_text("message's key", message.key));
  PAWL_CHECK(check_text("message's event", message.event));
  PAWL_CHECK(check_text("message's payload", message.payload));
  PAWL_TRY(const auto number, next_number());
  extras_.outbox.push_back({number, std::move(message.machine), std::move(message.key),
                            std::move(message.event), std::move(message.payload)});
  return {};
}

Result<void> Decider::collect(std::vector<effect::Any> effects) {
  for (auto& any : effects) {
    if (auto* set = std::get_if<effect::SetTimer>(&any)) {
      PAWL_CHECK(add(*set));
    } else if (const auto* clear = std::get_if<effect::ClearTimer>(&any)) {
      std::erase_if(extras_.timers, [&](const TimerRecord& timer) { return timer.name == clear->name; });
    } else if (auto* work = std::get_if<effect::Work>(&any)) {
      PAWL_CHECK(add(*work));
    } else if (const auto* cancel = std::get_if<effect::CancelWork>(&any)) {
      std::erase_if(extras_.work, [&](const WorkRecord& record) { return record.name == cancel->name; });
    } else if (const auto* stop = std::get_if<effect::StopWork>(&any)) {
      stop_work(*stop);
    } else if (auto* enter = std::get_if<effect::EnterQueue>(&any)) {
      PAWL_CHECK(add(*enter));
    } else if (std::holds_alternative<effect::LeaveQueue>(any)) {
      extras_.queue.reset();
      change_.enters_queue = false;
    } else if (auto* message = std::get_if<effect::Message>(&any)) {
      PAWL_CHECK(add(*message));
    } else {
      change_.sql.push_back(std::move(std::get<Sql>(any)));
    }
  }
  return {};
}

/// Removes a piece of work; false if `attempt` is not its current attempt.
bool Decider::drop_work(std::int64_t number, std::uint32_t attempt) {
  return std::erase_if(extras_.work, [&](const WorkRecord& work) {
           return work.number == number && work.attempt == attempt;
         }) == 1;
}

/// The texts must outlive the batch.
Change Decider::record(EntryKind kind, std::string_view event, std::string_view payload) {
  if (next_data_) draft_.data = HeadData(*next_data_, std::move(next_value_));
  if (next_state_) draft_.state = static_cast<std::uint16_t>(*next_state_);
  PAWL_ASSERT(draft_.state >= Registry::kUnknown || draft_.state < definition().states.size(),
              "an instance is in a state of its machine", draft_.state);
  draft_.extras = std::move(extras_);
  draft_.version += 1;
  PAWL_ASSERT(newest_ >= now_ && newest_ > draft_.at, "log time grows with every entry");
  draft_.at = newest_;
  if (kind == EntryKind::created) draft_.created_at = draft_.at;
  change_.kind = kind;
  change_.event = event;
  change_.payload = payload;
  std::erase_if(change_.new_work, [&](std::int64_t number) {
    return std::ranges::find(draft_.extras.work, number, &WorkRecord::number) == draft_.extras.work.end();
  });
  return std::move(change_);
}

/// The texts are copied.
Change Decider::record_own(EntryKind kind, std::string_view event, std::string_view payload) {
  change_.own_event = CompactText(event);
  change_.own_payload = CompactText(payload);
  return record(kind, change_.own_event.view(), change_.own_payload.view());
}

/// Fires an event; if it is refused, the draft stays as it was.
Result<void> Decider::try_event(const Result<std::size_t>& event, const EventValue& value,
                                const std::optional<Error>& refused) {
  const auto before = extras_;
  auto taken = refused ? Result<void>(fail(*refused)) : check_alive();
  if (taken && !event) taken = fail(event.error());
  if (taken) taken = take_event(*event, value.typed.get(), value.payload);
  if (taken) return taken;
  extras_ = before;
  change_ = {};
  next_data_.reset();
  next_value_.reset();
  next_state_.reset();
  return taken;
}

/// Fires the event of a timer or a piece of work; its payload is borrowed. A refusal is recorded as an entry
/// of `kind` instead: the timer or work stays consumed, so that it takes effect once.
Change Decider::consume(EntryKind kind, const std::string& name, const Result<std::size_t>& event,
                        const EventValue& value, const std::optional<Error>& refused, const Error* cause) {
  const auto taken = try_event(event, value, refused);
  if (taken) return record(EntryKind::fired, definition().events[*event].name, value.payload);
  JsonWriter reason;
  reason.begin_object().key("refused").string(recorded(taken.error()));
  if (cause != nullptr) reason.key("error").string(recorded(*cause));
  reason.end_object();
  return record_own(kind, name, reason.take().value_or("{}"));
}

Decision Decider::operator()(const CreateInstance& create) {
  PAWL_CHECK(check_new(create));
  if (draft_.exists) {
    draft_.generation += 1;
  } else {
    draft_.partition = create.partition;
  }
  draft_.exists = true;
  if (!create.first) {
    next_data_ = create.data;
    next_state_ = definition().initial;
    return record(EntryKind::created, "", "");
  }
  draft_.data = HeadData(create.data, create.value);
  draft_.state = static_cast<std::uint16_t>(definition().initial);
  PAWL_CHECK(take_event(create.first->event, create.first->typed.get(), create.first->payload));
  // Many instances may wait in a queue, so these are kept as text only.
  if (extras_.work.empty() || extras_.queue) next_value_.reset();
  return record(EntryKind::created, definition().events[create.first->event].name, create.first->payload);
}

/// Whether the instance may be created: it is new, or it is finished and may have another generation.
Result<void> Decider::check_new(const CreateInstance& create) const {
  if (!draft_.exists) return {};
  const bool finished = registry_.finished(draft_.machine, draft_.state);
  if (!finished) {
    return fail(Code::duplicate_instance, fmt::format("{} exists already", name()),
                {{"key", std::string(draft_.key)}});
  }
  if (!definition().generations) {
    return fail(
        Code::finished_instance,
        fmt::format("{} is finished; {} does not allow another generation", name(), definition().name),
        {{"key", std::string(draft_.key)}});
  }
  if (!create.partition.empty() && create.partition != draft_.partition) {
    return fail(Code::wrong_partition,
                fmt::format("{} belongs to partition \"{}\"", name(), draft_.partition));
  }
  return {};
}

Decision Decider::operator()(const SendEvent& send) {
  PAWL_CHECK(check_alive());
  if (send.expected_version && *send.expected_version != draft_.version) {
    return fail(Code::version_conflict,
                fmt::format("{} has version {}, expected {}", name(), draft_.version, *send.expected_version),
                {{"key", std::string(draft_.key)}, {"version", std::to_string(draft_.version)}});
  }
  PAWL_CHECK(take_event(send.event, send.typed.get(), send.payload));
  return record(EntryKind::fired, definition().events[send.event].name, send.payload);
}

Decision Decider::operator()(const FireTimer& fire) {
  const auto timer = std::ranges::find_if(extras_.timers, [&](const TimerRecord& candidate) {
    return candidate.name == fire.name && candidate.generation == fire.generation;
  });
  if (!draft_.exists || timer == extras_.timers.end()) return std::nullopt;
  const auto due = *timer;
  extras_.timers.erase(timer);
  const EventValue value{{}, due.payload, nullptr};
  auto change =
      consume(EntryKind::timer, due.name, definition().find_event(due.event), value, fire.refused, nullptr);
  change.own_payload = CompactText(change.payload);  // the timer's own is gone
  change.payload = change.own_payload.view();
  return change;
}

Decision Decider::operator()(const BeginWork& begin) {
  const auto work = std::ranges::find(extras_.work, begin.number, &WorkRecord::number);
  if (!draft_.exists || work == extras_.work.end() || work->stop) return std::nullopt;
  // One that was postponed may come after the attempt that it was meant to begin.
  if (work->attempt != begin.after) return std::nullopt;
  work->attempt += 1;
  work->not_before.reset();
  work->failed_at.reset();
  return record_own(EntryKind::work, work->name, fmt::format("{{\"attempt\":{}}}", work->attempt));
}

Decision Decider::operator()(const FinishWork& finish) {
  const auto work = std::ranges::find(extras_.work, finish.number, &WorkRecord::number);
  if (!draft_.exists || work == extras_.work.end()) return std::nullopt;
  const auto name = work->name;
  if (!drop_work(finish.number, finish.attempt)) return std::nullopt;
  if (!finish.event) return record_own(EntryKind::work, name, R"({"done":true})");
  return consume(EntryKind::work, name, event_of_type(finish.event->type), *finish.event, finish.refused,
                 nullptr);
}

Decision Decider::operator()(const FailWork& failed) {
  const auto work = std::ranges::find(extras_.work, failed.number, &WorkRecord::number);
  if (!draft_.exists || work == extras_.work.end() || work->attempt != failed.attempt) return std::nullopt;
  const auto name = work->name;
  if (failed.event && !failed.delay) {
    extras_.work.erase(work);
    return consume(EntryKind::work, name, event_of_type(failed.event->type), *failed.event, failed.refused,
                   &failed.error);
  }
  if (failed.delay) {
    work->failed_at = now_;
    work->not_before = now_ + *failed.delay;
  } else {
    extras_.work.erase(work);
  }
  if (failed.event) {
    // If the instance refuses the event, the attempt has failed all the same.
    const auto event = event_of_type(failed.event->type);
    if (try_event(event, *failed.event, failed.refused))
      return record(EntryKind::fired, definition().events[*event].name, failed.event->payload);
  }
  JsonWriter reason;
  reason.begin_object().key("attempt").integer(std::int64_t{failed.attempt});
  reason.key("error").string(recorded(failed.error));
  reason.key("again").boolean(failed.delay.has_value()).end_object();
  return record_own(EntryKind::work, name, reason.take().value_or("{}"));
}

Decision Decider::operator()(const AcknowledgeMessage& acknowledge) {
  const auto message = std::ranges::find(extras_.outbox, acknowledge.number, &MessageRecord::number);
  if (!draft_.exists || message == extras_.outbox.end()) return std::nullopt;
  JsonWriter outcome;
  outcome.begin_object().key("to").string(message->machine + "/" + message->key);
  outcome.key("delivered").boolean(!acknowledge.refused);
  if (acknowledge.refused) outcome.key("refused").string(recorded(*acknowledge.refused));
  outcome.end_object();
  const auto event = message->event;
  extras_.outbox.erase(message);
  return record_own(EntryKind::message, event, outcome.take().value_or("{}"));
}

Decision Decider::operator()(const RecoverInstance&) {
  if (!draft_.exists || draft_.state >= Registry::kUnknown) return std::nullopt;
  const auto target = definition().states[draft_.state].recovers_to;
  if (!target) return std::nullopt;
  const auto from = definition().states[draft_.state].name;
  next_state_ = *target;
  JsonWriter payload;
  payload.begin_object().key("from").string(from).end_object();
  return record_own(EntryKind::recovery, "recovery", payload.take().value_or("{}"));
}

}  // namespace

Result<std::optional<Change>> decide(const Registry& registry, Draft& draft, const Command& command,
                                     Time now) {
  const auto version = draft.version;
  const auto generation = draft.generation;
  auto change = std::visit(Decider(registry, draft, now), command);
  PAWL_ASSERT(!change || !*change || (draft.exists && draft.version == version + 1),
              "an entry is exactly one version", version, draft.version);
  PAWL_ASSERT(!change || !*change || draft.generation == generation ||
                  (draft.generation == generation + 1 && (*change)->kind == EntryKind::created),
              "only a creation starts another generation", generation, draft.generation);
  return change;
}

bool refuse(Command& command, const Error& refused) {
  std::optional<Error>* place = nullptr;
  if (auto* fire = std::get_if<FireTimer>(&command)) place = &fire->refused;
  if (auto* finish = std::get_if<FinishWork>(&command); finish != nullptr && finish->event)
    place = &finish->refused;
  if (auto* failed = std::get_if<FailWork>(&command); failed != nullptr && failed->event)
    place = &failed->refused;
  if (place == nullptr || place->has_value()) return false;
  PAWL_ASSERT(!std::holds_alternative<SendEvent>(command),
              "a refusal of a caller's event is returned to the caller");
  *place = refused;
  return true;
}

}  // namespace pawl
