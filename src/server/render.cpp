// SPDX-License-Identifier: Apache-2.0
#include "server/render.hpp"

#include <fmt/format.h>

#include "pawl/time.hpp"

namespace pawl::server {
namespace {

void write_legal(JsonWriter& out, const Instance& instance, const Definition* definition) {
  out.key("legal").begin_array();
  if (definition != nullptr && !instance.finished) {
    if (const auto state = definition->find_state(instance.state)) {
      for (const auto event : definition->legal_events(*state)) out.string(event);
    }
  }
  out.end_array();
}

}  // namespace

void write_instance(JsonWriter& out, const Instance& instance, const Definition* definition) {
  out.begin_object().key("machine").string(instance.machine).key("key").string(instance.key);
  out.key("id").string(instance.id.to_string()).key("state").string(instance.state);
  out.key("finished").boolean(instance.finished).key("version").integer(instance.version);
  out.key("generation").integer(instance.generation).key("seq").integer(instance.seq);
  if (!instance.partition.empty()) out.key("partition").string(instance.partition);
  out.key("created_at").string(to_string(instance.created_at)).key("at").string(to_string(instance.at));
  out.key("data").embed(instance.data.empty() ? "null" : instance.data);
  write_legal(out, instance, definition);
  out.key("timers").begin_array();
  for (const auto& timer : instance.timers) {
    out.begin_object().key("name").string(timer.name).key("due").string(to_string(timer.due));
    out.key("event").string(timer.event).end_object();
  }
  out.end_array().key("work").begin_array();
  for (const auto& work : instance.work) {
    out.begin_object().key("number").integer(work.number).key("name").string(work.name);
    out.key("attempt").integer(std::int64_t{work.attempt});
    if (work.not_before) out.key("not_before").string(to_string(*work.not_before));
    out.end_object();
  }
  out.end_array().end_object();
}

void write_event(JsonWriter& out, const LogEvent& event) {
  out.begin_object().key("seq").integer(event.seq).key("cursor").string(event.cursor);
  out.key("at").string(to_string(event.at)).key("kind").string(event.kind);
  out.key("machine").string(event.machine).key("key").string(event.key);
  out.key("id").string(event.id.to_string()).key("event").string(event.event);
  if (!event.payload.empty()) out.key("payload").embed(event.payload);
  out.key("state").string(event.state).key("finished").boolean(event.finished);
  out.key("version").integer(event.version).key("generation").integer(event.generation);
  if (!event.data.empty()) out.key("data").embed(event.data);
  out.end_object();
}

void write_machine(JsonWriter& out, const Definition& definition,
                   const std::map<std::string, std::size_t>& counts) {
  out.begin_object().key("name").string(definition.name).key("definition").embed(to_json(definition));
  out.key("counts").begin_object();
  std::uint64_t total = 0;
  for (const auto& [state, count] : counts) {
    out.key(state).integer(std::uint64_t{count});
    total += count;
  }
  out.end_object().key("instances").integer(total).end_object();
}

/// Weak, because the same instance may be sent compressed or not.
std::string etag(const Instance& instance) {
  return fmt::format("W/\"{}.{}.{}\"", instance.generation, instance.version, instance.seq);
}

}  // namespace pawl::server
