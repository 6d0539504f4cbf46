// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/replay.hpp"

#include <fmt/format.h>

#include <set>

#include "pawl/effects.hpp"

namespace pawl::scenarios {

void Replay::require(bool holds, std::string_view what, std::string_view machine, std::string_view key) {
  if (!holds) sim_.require(false, fmt::format("{} \"{}\": {}", machine, key, what));
}

void Replay::check(const Engine& engine) {
  follow(engine);
  std::map<std::string, std::map<std::string, std::size_t>> counted;
  std::set<InstanceId> shown;
  ListQuery query{.limit = 7};
  do {
    const auto page = engine.list(query);
    sim_.require(page.has_value(), page ? "" : "a list failed: " + page.error().to_string());
    for (const auto& instance : page->instances) {
      const auto& [id, machine, key] = std::tie(instance.id, instance.machine, instance.key);
      require(shown.insert(id).second, "it is listed twice", machine, key);
      ++counted[machine][instance.state];
      const auto read = engine.read(machine, key);
      require(read.has_value(), "it is listed and cannot be read", machine, key);
      require(read->seq == instance.seq && read->data == instance.data, "a list and a read differ", machine,
              key);
      if (!adopt(instance)) compare(instance);
    }
    query.cursor = page->next;
  } while (!query.cursor.empty());
  for (const auto& [machine, states] : engine.counts()) {
    for (const auto& [state, count] : states) {
      sim_.require(counted[machine][state] == count,
                   fmt::format("{} are counted in {}.{} and {} are listed", count, machine, state,
                               counted[machine][state]));
    }
  }
  // It may have finished in what was cut away.
  std::erase_if(instances_,
                [&](const auto& entry) { return !entry.second.known && !shown.contains(entry.first); });
  gap_ = 0;
  for (const auto& [id, model] : instances_) {
    sim_.require(shown.contains(id) || model.finished, "an instance is gone that has not finished");
  }
}

void Replay::follow(const Engine& engine) {
  auto subscription = engine.subscribe(cursor_);
  if (!subscription && subscription.error().code() == Code::cursor_expired) {
    forget_what_was_cut(subscription.error());
    subscription = engine.subscribe("begin");
  }
  sim_.require(subscription.has_value(), subscription ? "" : "a cursor was refused");
  auto reader = *subscription;
  for (;;) {
    const auto events = reader.poll(16);
    sim_.require(events.has_value(), events ? "" : "the feed failed: " + events.error().to_string());
    if (events->empty()) break;
    for (const auto& event : *events) replay(engine, event);
  }
  cursor_ = reader.cursor();
}

void Replay::forget_what_was_cut(const Error& expired) {
  gap_ = std::stoll(std::string(expired.field("horizon")));
  sim_.require(gap_ > last_seq_, "a cursor has expired that lies above the horizon");
  for (auto& [id, model] : instances_) model.known = false;
}

void Replay::replay(const Engine& engine, const LogEvent& event) {
  const auto holds = [&](bool it, std::string_view what) { require(it, what, event.machine, event.key); };
  holds(event.seq > last_seq_ && event.at > last_at_, "an entry came twice or out of order");
  last_seq_ = event.seq;
  last_at_ = event.at;
  const auto* definition = engine.definition(event.machine);
  holds(definition != nullptr, "its machine is not known");
  auto& model = instances_.try_emplace(event.id, Model{.known = gap_ == 0}).first->second;
  if (!model.known) {
    // What came before it was cut away: it is taken as it is.
    model.state = event.state;
    model.data = event.data;
    model.known = true;
  } else if (event.kind == "created") {
    // Another generation, or another instance after this one was forgotten.
    const bool again = event.generation == model.generation + 1 && event.version == model.version + 1;
    holds(model.version == 0 || model.finished, "it began anew before it had finished");
    holds(again || (event.generation == 1 && event.version == 1), "it did not begin with its first version");
    model.state = event.event.empty() ? definition->states[definition->initial].name : event.state;
    model.data = event.data;
  } else {
    holds(event.version == model.version + 1 && event.generation == model.generation,
          "a version is missing or doubled in the log");
    if (event.kind == "fired") fire(*definition, event, model);
    if (event.kind == "recovery") {
      const auto to = definition->states[definition->find_state(model.state).value()].recovers_to;
      holds(to.has_value(), "it was recovered from a state that says nothing about it");
      model.state = definition->states[*to].name;
    }
  }
  holds(model.state == event.state && model.data == event.data, "the log differs from the machine's table");
  model.finished = definition->states[definition->find_state(model.state).value()].terminal;
  model.version = event.version;
  model.generation = event.generation;
  model.seq = event.seq;
  model.at = event.at;
}

void Replay::fire(const Definition& definition, const LogEvent& event, Model& model) {
  const auto number = definition.find_event(event.event);
  require(number.has_value(), "its event is not known", event.machine, event.key);
  Effects effects(event.at, event.machine, event.key);
  auto step = definition.events[*number].fire_json(definition.find_state(model.state).value(),
                                                   {.text = model.data}, event.payload, &effects);
  require(step && step->verdict == Verdict::fired, "an event fired that its table refuses", event.machine,
          event.key);
  model.state = definition.states[step->state].name;
  model.data = std::move(step->data);
}

bool Replay::adopt(const Instance& shown) {
  const auto found = instances_.find(shown.id);
  if (gap_ == 0 || (found != instances_.end() && found->second.known)) return false;
  require(shown.seq <= gap_, "its newest entry is not in the log", shown.machine, shown.key);
  instances_[shown.id] = {.state = shown.state,
                          .data = shown.data,
                          .finished = shown.finished,
                          .version = shown.version,
                          .generation = shown.generation,
                          .seq = shown.seq,
                          .at = shown.at};
  return true;
}

void Replay::compare(const Instance& shown) {
  const auto found = instances_.find(shown.id);
  require(found != instances_.end(), "it is not in the log", shown.machine, shown.key);
  const auto& model = found->second;
  require(shown.seq == model.seq && shown.version == model.version && shown.generation == model.generation &&
              shown.at == model.at,
          "it does not show its newest entry", shown.machine, shown.key);
  require(shown.state == model.state && shown.data == model.data && shown.finished == model.finished,
          "it differs from what the log makes of it", shown.machine, shown.key);
}

}  // namespace pawl::scenarios
