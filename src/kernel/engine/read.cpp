// SPDX-License-Identifier: Apache-2.0
// Reading: returns durable state only.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "kernel/engine/core.hpp"
#include "kernel/engine/show.hpp"

namespace pawl {
namespace {

/// The position of a page in a list: after the instance with this time of creation and id.
struct ListPosition {
  Time created_at{};
  InstanceId id;
};

std::string to_cursor(const ListPosition& position) {
  return fmt::format("{}.{}", position.created_at.time_since_epoch().count(), position.id.to_string());
}

Result<ListPosition> parse_list_cursor(std::string_view text) {
  const auto dot = text.find('.');
  std::int64_t micros = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + std::min(dot, text.size()), micros);
  const auto id =
      parse_instance_id(dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1));
  if (parsed.ec != std::errc{} || !id) return fail(Code::cursor_invalid, "this is not a cursor of a list");
  return ListPosition{Time(Duration(micros)), *id};
}

}  // namespace

Instance EngineCore::to_instance(const Draft& draft) const {
  const auto& extras = draft.published != nullptr ? *draft.published : draft.extras;
  return {.id = draft.id,
          .machine = std::string(registry_.machine_name(draft.machine)),
          .key = std::string(draft.key),
          .partition = std::string(draft.partition),
          .state = std::string(registry_.state_name(draft.machine, draft.state)),
          .finished = registry_.finished(draft.machine, draft.state),
          .version = draft.version,
          .generation = draft.generation,
          .seq = draft.seq,
          .created_at = draft.created_at,
          .at = draft.at,
          .data = std::string(draft.data.text()),
          .timers = timers_of(extras),
          .work = work_of(extras),
          .queue = queue_of(draft.id, extras)};
}

/// Without evicted data: `load_data` reads that without blocking the lane.
Instance EngineCore::to_instance(const Head& head) const {
  return {.id = head.id,
          .machine = std::string(registry_.machine_name(head.machine)),
          .key = std::string(head.key.view()),
          .partition = partitions_[head.partition],
          .state = std::string(registry_.state_name(head.machine, head.state)),
          .finished = registry_.finished(head.machine, head.state),
          .version = head.version,
          .generation = head.generation,
          .seq = head.seq,
          .created_at = head.created_at,
          .at = head.at,
          .data = std::string(head.data.text()),
          .timers = head.extras ? timers_of(*head.extras) : std::vector<TimerStatus>{},
          .work = head.extras ? work_of(*head.extras) : std::vector<WorkStatus>{},
          .queue = head.extras ? queue_of(head.id, *head.extras) : std::nullopt};
}

std::optional<QueueStatus> EngineCore::queue_of(const InstanceId& id, const Extras& extras) const {
  if (!extras.queue) return std::nullopt;
  return QueueStatus{extras.queue->pool, extras.queue->priority, may_work(id, extras.queue)};
}

/// The instance after an entry of the log. What entries do not repeat is taken from the head, if it still is
/// of the same generation.
Result<Instance> EngineCore::to_instance(Entry entry) const {
  Extras extras;
  if (!entry.extra.empty()) {
    PAWL_TRY(extras, decode<Extras>(entry.extra));
  }
  Instance made{.id = entry.id,
                .machine = std::move(entry.machine),
                .key = std::move(entry.key),
                .partition = std::move(entry.partition),
                .state = std::move(entry.state),
                .finished = entry.finished,
                .version = entry.version,
                .generation = entry.generation,
                .seq = entry.seq,
                .at = entry.at,
                .data = std::move(entry.data),
                .timers = timers_of(extras),
                .work = work_of(extras),
                .queue = queue_of(entry.id, extras)};
  if (const auto* head = heads_.find(made.id); head != nullptr) {
    made.partition = partitions_[head->partition];
    if (head->generation == made.generation) made.created_at = head->created_at;
  }
  return made;
}

Result<std::string> EngineCore::load_data(const InstanceId& id, std::uint16_t machine, Seq seq) const {
  PAWL_TRY(auto entry, store_->head_entry(id, seq));
  if (!entry) {
    return fail(Code::store_corrupt,
                fmt::format("the entry {} of instance {} is missing", seq, id.to_string()));
  }
  if (!registry_.knows(machine)) return std::move(entry->data);
  return registry_.definition(machine).upgrade(std::move(entry->data), static_cast<int>(entry->schema));
}

Result<Instance> EngineCore::read(std::string_view machine, std::string_view key) const {
  PAWL_CHECK(store_->still_owner());
  PAWL_TRY(const auto number, registry_.find(machine));
  while (true) {
    Instance instance;
    {
      const std::shared_lock lock(heads_mutex_);
      const auto* head = heads_.find(registry_.id(number, key));
      if (head == nullptr || head->key.view() != key) {
        return fail(Code::unknown_instance, fmt::format("there is no {} \"{}\"", machine, key.substr(0, 128)),
                    {{"machine", std::string(machine)}, {"key", std::string(key.substr(0, 128))}});
      }
      instance = to_instance(*head);
    }
    if (!instance.data.empty()) return instance;
    auto data = load_data(instance.id, number, instance.seq);
    if (data) {
      instance.data = *std::move(data);
      return instance;
    }
    // If the entry is gone because the instance was forgotten or changed, look it up again.
    if (data.error().code() != Code::store_corrupt || !has_moved(instance.id, instance.seq))
      return fail(std::move(data).error());
  }
}

/// Whether an instance was forgotten or changed since its head said that its newest entry is `seq`.
bool EngineCore::has_moved(const InstanceId& id, Seq seq) const {
  // The store forgets first, then memory: waits if this happens at present.
  const std::lock_guard forgetting(forget_mutex_);
  const std::shared_lock lock(heads_mutex_);
  const auto* head = heads_.find(id);
  return head == nullptr || head->seq != seq;
}

/// The machines of a query, by number; empty: all.
Result<std::vector<bool>> EngineCore::machines_of(const ListQuery& query) const {
  std::vector<bool> wanted;
  const auto want = [&](const std::string& name) -> Result<void> {
    PAWL_TRY(const auto number, registry_.find(name));
    wanted.resize(registry_.size());
    wanted[number] = true;
    return {};
  };
  if (!query.machine.empty()) PAWL_CHECK(want(query.machine));
  for (const auto& name : query.machines) PAWL_CHECK(want(name));
  return wanted;
}

/// Filters by what is in memory, so that no data is loaded in vain.
Result<InstancePage> EngineCore::list(const ListQuery& query) const {
  PAWL_CHECK(store_->still_owner());
  PAWL_TRY(const auto machines, machines_of(query));
  std::optional<ListPosition> behind;
  if (!query.cursor.empty()) {
    PAWL_TRY(behind, parse_list_cursor(query.cursor));
  }
  const auto limit = std::clamp<std::size_t>(query.limit, 1, 10'000);
  const auto wanted = [&](const Head& head) {
    return head.live && (machines.empty() || (head.machine < machines.size() && machines[head.machine])) &&
           (query.state.empty() || registry_.state_name(head.machine, head.state) == query.state) &&
           head.key.view().starts_with(query.prefix) &&
           (query.queue.empty() ||
            (head.extras && head.extras->queue && head.extras->queue->pool == query.queue)) &&
           (query.partition.empty() || partitions_[head.partition] == query.partition) &&
           (!query.changed_after || head.at > *query.changed_after) &&
           (!query.changed_before || head.at < *query.changed_before) &&
           (!query.finished || registry_.finished(head.machine, head.state) == *query.finished);
  };
  InstancePage page;
  {
    const std::shared_lock lock(heads_mutex_);
    auto begin = query.created_after ? heads_.first_after(*query.created_after, {}) : 0;
    auto end = heads_.slots();
    if (behind && query.newest_first) {
      end = heads_.count_before(behind->created_at, behind->id);
    } else if (behind) {
      begin = heads_.first_after(behind->created_at, behind->id);
    }
    while (begin < end && page.instances.size() <= limit) {
      const auto& head = heads_.slot(query.newest_first ? --end : begin++);
      if (wanted(head)) page.instances.push_back(to_instance(head));
    }
  }
  if (page.instances.size() > limit) {
    page.instances.pop_back();
    page.next = to_cursor({page.instances.back().created_at, page.instances.back().id});
  }
  for (auto place = page.instances.begin(); place != page.instances.end();) {
    if (!place->data.empty()) {
      ++place;
      continue;
    }
    const auto number = registry_.find(place->machine);
    auto data = load_data(place->id, number.value_or(Registry::kUnknown), place->seq);
    if (data) {
      place->data = *std::move(data);
      continue;
    }
    if (data.error().code() != Code::store_corrupt || !has_moved(place->id, place->seq))
      return fail(std::move(data).error());
    // It has changed in the meantime: checks its new state against the query.
    const std::shared_lock lock(heads_mutex_);
    const auto* head = heads_.find(place->id);
    // An instance that was created again is listed after the others.
    if (head != nullptr && head->created_at == place->created_at && wanted(*head)) {
      *place = to_instance(*head);
    } else {
      place = page.instances.erase(place);
    }
  }
  return page;
}

std::map<std::string, std::map<std::string, std::size_t>> EngineCore::counts() const {
  std::map<std::string, std::map<std::string, std::size_t>> all;
  for (std::size_t i = 0; i < registry_.size(); ++i) {
    const auto& definition = registry_.definition(static_cast<std::uint16_t>(i));
    for (const auto& state : definition.states) all[definition.name][state.name] = 0;
  }
  const std::shared_lock lock(heads_mutex_);
  for (const auto& [key, count] : counts_) {
    if (count == 0) continue;
    all[std::string(registry_.machine_name(key.first))]
       [std::string(registry_.state_name(key.first, key.second))] = count;
  }
  return all;
}

LogEvent EngineCore::to_event(Entry entry) const {
  auto cursor = make_cursor(entry.seq);
  auto event = pawl::to_event(std::move(entry), std::move(cursor));
  if (event.key.empty()) {
    const std::shared_lock lock(heads_mutex_);
    if (const auto* head = heads_.find(event.id)) event.key = head->key.view();
  }
  return event;
}

Result<History> EngineCore::history(std::string_view machine, std::string_view key, Seq before,
                                    std::size_t limit) const {
  const auto count = std::clamp<std::size_t>(limit, 1, 10'000);
  std::vector<Entry> entries;
  while (true) {
    PAWL_TRY(const auto instance, read(machine, key));
    PAWL_TRY(entries, store_->history(instance.id, instance.seq, before, count));
    // There is always a newest entry, unless it was cut or forgotten after the lookup.
    if (!entries.empty() || before != 0 || !has_moved(instance.id, instance.seq)) break;
  }
  History made;
  const Seq reached = entries.empty() ? 0 : entries.back().prev;
  const Seq horizon = store_->info().horizon;
  made.truncated = reached != 0 && reached <= horizon;
  made.next = reached != 0 && !made.truncated ? entries.back().seq : 0;
  for (auto& entry : entries) made.events.push_back(to_event(std::move(entry)));
  return made;
}

Result<Instance> EngineCore::wait_for_state(std::string_view machine, std::string_view key,
                                            const std::vector<std::string>& states,
                                            std::optional<Duration> timeout) {
  PAWL_TRY(const auto number, registry_.find(machine));
  std::vector<std::uint16_t> wanted;
  for (const auto& state : states) {
    PAWL_TRY(const auto index, registry_.definition(number).find_state(state));
    wanted.push_back(static_cast<std::uint16_t>(index));
  }
  const auto reached = [&](const Instance& instance) {
    return instance.finished || std::ranges::find(states, instance.state) != states.end();
  };
  const auto id = registry_.id(number, key);
  const auto deadline = timeout ? std::optional(runtime_.instant() + *timeout) : std::nullopt;
  while (true) {
    BlockedCalls::ForState call(blocked_calls_, id, wanted);
    watch_ownership();
    auto present = read(machine, key);
    if (!present || reached(*present)) return present;
    if (call.ended()) return fail(*call.ended());
    runtime_.wait(call.gate(), deadline ? std::optional(*deadline - runtime_.instant()) : std::nullopt);
    // Reads again, because the instance may have left the state already.
    if (!call.gate().is_open()) {
      return fail(Code::timed_out, fmt::format("{} \"{}\" is still {}", machine, key, present->state),
                  {{"state", present->state}});
    }
  }
}

std::string EngineCore::make_cursor(Seq seq) const { return fmt::format("{}.{}", incarnation_, seq); }

Result<Seq> EngineCore::parse_cursor(std::string_view cursor) const {
  const auto info = store_->info();
  if (cursor.empty()) return durable_seq_.load();
  if (cursor == "begin") return info.horizon;
  const auto dot = cursor.find('.');
  Seq seq = 0;
  const auto* end = cursor.data() + cursor.size();
  const bool numbered = dot != std::string_view::npos &&
                        std::from_chars(cursor.data() + dot + 1, end, seq).ptr == end &&
                        dot + 1 < cursor.size();
  if (!numbered || seq < 0) return fail(Code::cursor_invalid, "this is not a cursor of a log");
  if (cursor.substr(0, dot) != info.incarnation || seq > durable_seq_) {
    return fail(Code::cursor_invalid,
                "this cursor belongs to another store, or to one from before a restored backup; "
                "subscribe from \"begin\" or from now on");
  }
  if (seq < info.horizon) {
    return fail(Code::cursor_expired,
                fmt::format("entries up to {} have been cut away; subscribe from \"begin\"", info.horizon),
                {{"horizon", std::to_string(info.horizon)}});
  }
  return seq;
}

Result<std::vector<LogEvent>> EngineCore::follow(Seq after, std::size_t limit) const {
  std::vector<LogEvent> events;
  const std::shared_lock open(closing_mutex_);
  if (!store_) return fail(Code::stopped, "the engine has stopped");
  PAWL_CHECK(store_->still_owner());
  if (after >= durable_seq_) return events;
  PAWL_TRY(auto entries, store_->feed(after, std::clamp<std::size_t>(limit, 1, 10'000)));
  for (auto& entry : entries) events.push_back(to_event(std::move(entry)));
  return events;
}

Result<void> EngineCore::wait_for_entries(Seq after, std::optional<Duration> timeout) {
  BlockedCalls::ForEntry call(blocked_calls_, after);
  if (durable_seq_ > after) return {};
  if (call.ended()) return fail(*call.ended());
  watch_ownership();
  runtime_.wait(call.gate(), timeout);
  const auto ended = blocked_calls_.ended();
  if (ended && durable_seq_ <= after) return fail(*ended);
  return {};
}

Seq EngineCore::partition_seq(std::string_view partition) const {
  const std::shared_lock lock(heads_mutex_);
  const auto found = partition_numbers_.find(partition);
  return found == partition_numbers_.end() ? 0 : partition_seqs_[found->second];
}

std::vector<std::string> EngineCore::partition_keys(std::string_view machine,
                                                    std::string_view partition) const {
  std::vector<std::string> keys;
  const auto number = registry_.find(machine);
  const std::shared_lock lock(heads_mutex_);
  const auto found = partition_numbers_.find(partition);
  if (!number || found == partition_numbers_.end()) return keys;
  for (const auto& id : partition_members_[found->second]) {
    const auto* head = heads_.find(id);
    if (head != nullptr && head->machine == *number) keys.emplace_back(head->key.view());
  }
  return keys;
}

Result<std::vector<std::vector<SqlValue>>> EngineCore::query(const Sql& statement,
                                                             const std::stop_token& stop) const {
  PAWL_CHECK(store_->still_owner());
  return store_->query(statement, stop);
}

}  // namespace pawl
