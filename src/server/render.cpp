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

bool sees_data(http::Role role, Readers readers) {
  switch (readers) {
    case Readers::viewers:
      return role >= http::Role::viewer;
    case Readers::operators:
      return role >= http::Role::operator_;
    case Readers::admins:
      break;
  }
  return role >= http::Role::admin;
}

bool sees_data(http::Role role, const Definition* definition) {
  return sees_data(role, definition == nullptr ? Readers::admins : definition->readers);
}

void write_instance(JsonWriter& out, const Instance& instance, const Definition* definition,
                    http::Role role) {
  out.begin_object().field("machine").string(instance.machine).field("key").string(instance.key);
  out.field("id").string(instance.id.to_string()).field("state").string(instance.state);
  out.field("finished").boolean(instance.finished).field("version").integer(instance.version);
  out.field("generation").integer(instance.generation).field("seq").integer(instance.seq);
  if (!instance.partition.empty()) out.field("partition").string(instance.partition);
  out.field("created_at").string(to_string(instance.created_at)).field("at").string(to_string(instance.at));
  if (sees_data(role, definition)) {
    out.field("data").splice(instance.data.empty() ? "null" : instance.data);
  } else {
    out.field("data").string(kConfidential).field("redacted").boolean(true);
  }
  write_legal(out, instance, definition);
  out.field("timers").begin_array();
  for (const auto& timer : instance.timers) {
    out.begin_object().field("name").string(timer.name).field("due").string(to_string(timer.due));
    out.field("event").string(timer.event).end_object();
  }
  out.end_array().field("work").begin_array();
  for (const auto& work : instance.work) {
    out.begin_object().field("number").integer(work.number).field("name").string(work.name);
    out.field("attempt").integer(std::int64_t{work.attempt});
    if (work.not_before) out.field("not_before").string(to_string(*work.not_before));
    out.end_object();
  }
  out.end_array().end_object();
}

void write_event(JsonWriter& out, const LogEvent& event, bool visible) {
  out.begin_object().field("seq").integer(event.seq).field("cursor").string(event.cursor);
  out.field("at").string(to_string(event.at)).field("kind").string(event.kind);
  out.field("machine").string(event.machine).field("key").string(event.key);
  out.field("id").string(event.id.to_string()).field("event").string(event.event);
  const auto write_value = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    if (visible) {
      out.field(name).splice(value);
    } else {
      out.field(name).string(kConfidential);
    }
  };
  write_value("payload", event.payload);
  out.field("state").string(event.state).field("finished").boolean(event.finished);
  out.field("version").integer(event.version).field("generation").integer(event.generation);
  write_value("data", event.data);
  if (!visible) out.field("redacted").boolean(true);
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
std::string etag(const Instance& instance, bool visible) {
  return "W/\"" + std::to_string(instance.generation) + '.' + std::to_string(instance.version) + '.' +
         std::to_string(instance.seq) + (visible ? "\"" : ".redacted\"");
}

}  // namespace pawl::server
