// SPDX-License-Identifier: Apache-2.0
// The verbs that read: machines, ls, get, history, timers, pools, stats, diagram.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"
#include "pawl/http.hpp"

namespace pawl::cli {
namespace {

/// The member as an array or object to walk over.
template <class Visit>
void each_in(JsonValue object, std::string_view name, Visit visit) {
  const auto found = object.find(name);
  for (std::size_t i = 0; found && i < found->size(); ++i) visit(found->at(i));
}

bool is_finished(JsonValue object) {
  const auto found = object.find("finished");
  return found && found->as_boolean().value_or(false);
}

void show_machines(JsonValue root) {
  std::map<std::string, JsonValue> counts;
  each_in(root, "machines", [&](JsonValue machine) {
    if (const auto found = machine.find("counts")) counts.emplace(text_of(machine, "name"), *found);
  });
  Table table({"MACHINE", "STATE", ">INSTANCES"});
  std::string before;
  for (const auto& [machine, state] : states_in_order(root)) {
    const auto count = counts.contains(machine) ? number_of(counts.at(machine), state) : 0;
    const auto style = count == 0 ? Style::dim : Style::plain;
    // Once is enough for the eye.
    table.add({machine == before ? "" : machine, Cell(state, style), Cell(grouped(count), style)});
    before = machine;
  }
  table.print();
}

void show_instances(JsonValue root) {
  Table table({"MACHINE", "KEY", "STATE", ">VERSION", "CHANGED", "AGE", "DATA"});
  each_in(root, "instances", [&](JsonValue instance) {
    const auto at = text_of(instance, "at");
    table.add({text_of(instance, "machine"), Cell(text_of(instance, "key"), Style::key),
               Cell(text_of(instance, "state"), state_style(is_finished(instance))),
               std::to_string(number_of(instance, "version")), to_seconds(at), ago(at),
               Cell(compact(instance, "data"), Style::dim)});
  });
  table.print();
  if (const auto next = text_of(root, "next"); !next.empty()) {
    note(fmt::format("there are more: --cursor {}", next));
  }
}

/// Reads pages until the limit is reached.
Result<JsonDocument> list(Source& source, InstanceQuery query) {
  auto wanted = query.limit;
  JsonWriter out;
  out.begin_object().key("instances").begin_array();
  while (true) {
    query.limit = std::min(wanted, source.most_page());
    PAWL_TRY(const auto page, source.instances(query));
    std::size_t count = 0;
    each_in(page.root(), "instances", [&](JsonValue instance) {
      out.embed(instance.to_text());
      ++count;
    });
    query.cursor = text_of(page.root(), "next");
    wanted -= std::min(count, wanted);
    if (query.cursor.empty() || wanted == 0) break;
  }
  out.end_array();
  if (!query.cursor.empty()) out.key("next").string(query.cursor);
  out.end_object();
  PAWL_TRY(const auto text, out.take());
  return parse_answer(text);
}

void show_history(JsonValue root) {
  Table table({">SEQ", "TIME", "KIND", "EVENT", "STATE", ">VERSION", "DATA"});
  each_in(root, "events", [&](JsonValue event) {
    table.add({std::to_string(number_of(event, "seq")), text_of(event, "at"),
               Cell(text_of(event, "kind"), Style::dim), Cell(text_of(event, "event"), Style::key),
               Cell(text_of(event, "state"), state_style(is_finished(event))),
               std::to_string(number_of(event, "version")), Cell(compact(event, "data"), Style::dim)});
  });
  table.print();
  const auto truncated = root.find("truncated");
  if (truncated && truncated->as_boolean().value_or(false)) note("older entries were removed by retention");
  if (const auto next = number_of(root, "next"); next != 0)
    note(fmt::format("there is more: --before {}", next));
}

Result<JsonDocument> all_timers(Source& source, const std::string& machine) {
  JsonWriter out;
  out.begin_object().key("timers").begin_array();
  std::string cursor;
  do {
    PAWL_TRY(const auto page, source.timers(machine, cursor));
    each_in(page.root(), "timers", [&](JsonValue timer) { out.embed(timer.to_text()); });
    cursor = text_of(page.root(), "next");
  } while (!cursor.empty());
  PAWL_TRY(const auto text, out.end_array().end_object().take());
  return parse_answer(text);
}

void show_timers(JsonValue root) {
  std::vector<JsonValue> timers;
  each_in(root, "timers", [&](JsonValue timer) { timers.push_back(timer); });
  std::ranges::sort(timers, {},
                    [](JsonValue timer) { return std::pair(text_of(timer, "due"), text_of(timer, "key")); });
  Table table({"DUE", "IN", "MACHINE", "KEY", "STATE", "TIMER", "EVENT"});
  for (const auto& timer : timers) {
    const auto due = text_of(timer, "due");
    table.add({to_seconds(due), ago(due), text_of(timer, "machine"), Cell(text_of(timer, "key"), Style::key),
               text_of(timer, "state"), text_of(timer, "name"), text_of(timer, "event")});
  }
  table.print();
}

void show_pools(JsonValue root) {
  Table table({"POOL", ">SIZE", ">GRANTED", ">WAITING"});
  each_in(root, "pools", [&](JsonValue pool) {
    const auto waiting = number_of(pool, "waiting");
    table.add({text_of(pool, "name"), grouped(number_of(pool, "size")), grouped(number_of(pool, "granted")),
               Cell(grouped(waiting), waiting > 0 ? Style::busy : Style::plain)});
  });
  table.print();
}

void show_stats(JsonValue root) {
  Table table({"WHAT", ">VALUE"});
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (const auto value = root.at(i).as_integer()) table.add({root.key_at(i), grouped(*value)});
  }
  table.print();
}

}  // namespace

int run_machines(const Common& common) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  return present((*source)->machines(), common.json, show_machines);
}

int run_ls(const Common& common, const ListArguments& arguments) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  auto query = arguments.query;
  if (arguments.finished || arguments.unfinished) query.finished = arguments.finished;
  return present(list(**source, std::move(query)), common.json, show_instances);
}

int run_get(const Common& common, const InstanceArguments& arguments) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  return present((*source)->instance(arguments.machine, arguments.key), common.json, show_instance);
}

int run_history(const Common& common, const HistoryArguments& arguments) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  const auto& [machine, key] = arguments.instance;
  return present((*source)->history(machine, key, arguments.before, arguments.limit), common.json,
                 show_history);
}

int run_timers(const Common& common, const TimerArguments& arguments) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  return present(all_timers(**source, arguments.machine), common.json, show_timers);
}

int run_stats(const Common& common) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  return present((*source)->stats(), common.json, show_stats);
}

int run_pools(const Common& common, const PoolArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  if (arguments.size) {
    const auto resized = client->call({.method = "PUT",
                                       .target = "/v1/pools/" + http::encode_percent(arguments.pool),
                                       .body = fmt::format("{{\"size\":{}}}", *arguments.size)});
    return present(resized ? parse_answer(*resized) : fail(resized.error()), common.json, [](JsonValue pool) {
      fmt::print("{} has {} permits until the server restarts\n", printable(text_of(pool, "name")),
                 grouped(number_of(pool, "size")));
    });
  }
  const auto body = client->get("/v1/pools");
  return present(body ? parse_answer(*body) : fail(body.error()), common.json, show_pools);
}

int run_diagram(const Common& common, const DiagramArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto format = common.json ? "json" : arguments.format;
  const auto text = client->get(
      fmt::format("/v1/machines/{}/diagram?format={}", http::encode_percent(arguments.machine), format));
  if (!text) return report(text.error());
  if (format == "json") return present(parse_answer(*text), true, [](JsonValue) {});
  for (std::size_t begin = 0; begin < text->size();) {
    const auto end = std::min(text->find('\n', begin), text->size());
    fmt::print("{}\n", printable(std::string_view(*text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return kOk;
}

}  // namespace pawl::cli
