// SPDX-License-Identifier: Apache-2.0
// pawl store: looks into a store's file, without a server and without changing it.
#include "store/store.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "pawl/json.hpp"
#include "pawl/names.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostEntries = 10'000;

struct Arguments {
  std::string path;
  bool json = false;
  std::int64_t after = 0;
  std::int64_t before = 0;
  std::size_t limit = 100;
  std::string machine;
  std::string key;
};

Result<std::unique_ptr<Store>> open(const Arguments& arguments) {
  return open_store_at({.where = store_address(arguments.path), .read_only = true, .create = false});
}

// pawl store info

int info(const Arguments& arguments) {
  const auto store = open(arguments);
  if (!store) return report(store.error());
  std::map<std::string, std::map<std::string, std::int64_t>> counts;
  std::int64_t instances = 0;
  const auto loaded = (*store)->load([&](const StoredHead& head) {
    ++counts[std::string(head.machine)][std::string(head.state)];
    ++instances;
  });
  if (!loaded) return report(loaded.error());
  const auto facts = (*store)->info();
  if (arguments.json) {
    JsonWriter out;
    out.begin_object().key("incarnation").string(facts.incarnation).key("epoch").integer(facts.epoch);
    out.key("last").integer(facts.last).key("last_at").string(to_string(facts.last_at));
    out.key("horizon").integer(facts.horizon).key("instances").integer(instances);
    out.key("machines").begin_object();
    for (const auto& [machine, states] : counts) {
      out.key(machine).begin_object();
      for (const auto& [state, count] : states) out.key(state).integer(count);
      out.end_object();
    }
    out.end_object().end_object();
    return print_json(out.take());
  }
  fmt::print("incarnation  {}\n", facts.incarnation);
  fmt::print("epoch        {}\n", facts.epoch);
  fmt::print("newest entry {}{}\n", facts.last, facts.last == 0 ? "" : " at " + to_string(facts.last_at));
  fmt::print("horizon      {}\n", facts.horizon);
  fmt::print("instances    {}\n", instances);
  if (counts.empty()) return kOk;
  fmt::print("\n");
  Table table({"MACHINE", "STATE", "INSTANCES"});
  for (const auto& [machine, states] : counts) {
    for (const auto& [state, count] : states) table.add({machine, state, std::to_string(count)});
  }
  table.print();
  return kOk;
}

// Entries, for log and history.

void write_entry(JsonWriter& out, const Entry& entry) {
  out.begin_object().key("seq").integer(entry.seq).key("at").string(to_string(entry.at));
  out.key("machine").string(entry.machine).key("key").string(entry.key);
  out.key("id").string(entry.id.to_string()).key("kind").string(enum_name(entry.kind));
  out.key("event").string(entry.event);
  if (!entry.payload.empty()) out.key("payload").embed(entry.payload);
  out.key("state").string(entry.state).key("finished").boolean(entry.finished);
  out.key("version").integer(entry.version).key("generation").integer(entry.generation);
  if (!entry.data.empty()) out.key("data").embed(entry.data);
  out.end_object();
}

void write_entries(JsonWriter& out, const std::vector<Entry>& entries) {
  out.key("entries").begin_array();
  for (const auto& entry : entries) write_entry(out, entry);
  out.end_array();
}

/// Only the entry that begins a generation carries its key; the others take it from the instance's head.
Result<void> fill_keys(Store& store, std::vector<Entry>& entries) {
  std::unordered_map<InstanceId, std::string> keys;
  for (const auto& entry : entries) keys.emplace(entry.id, entry.key);
  PAWL_CHECK(store.load([&](const StoredHead& head) {
    if (const auto found = keys.find(head.id); found != keys.end()) found->second = head.key;
  }));
  for (auto& entry : entries) entry.key = keys[entry.id];
  return {};
}

// pawl store log

int log(const Arguments& arguments) {
  const auto store = open(arguments);
  if (!store) return report(store.error());
  auto entries = (*store)->feed(arguments.after, arguments.limit);
  if (!entries) return report(entries.error());
  if (const auto filled = fill_keys(**store, *entries); !filled) return report(filled.error());
  if (arguments.json) {
    JsonWriter out;
    out.begin_object();
    write_entries(out, *entries);
    out.key("next").integer(entries->empty() ? arguments.after : entries->back().seq).end_object();
    return print_json(out.take());
  }
  Table table({"SEQ", "TIME", "MACHINE", "KEY", "KIND", "EVENT", "STATE", "VERSION"});
  for (const auto& entry : *entries) {
    table.add({std::to_string(entry.seq), to_string(entry.at), entry.machine, entry.key,
               enum_name(entry.kind), entry.event, entry.state, std::to_string(entry.version)});
  }
  table.print();
  return kOk;
}

// pawl store history

struct Found {
  InstanceId id;
  Seq head = 0;
};

/// By the names as they are stored: without the program that wrote them, nothing is known of renamings.
Result<Found> find_instance(Store& store, const Arguments& arguments) {
  std::optional<Found> found;
  bool machine_known = false;
  PAWL_CHECK(store.load([&](const StoredHead& head) {
    if (head.machine != arguments.machine) return;
    machine_known = true;
    if (head.key == arguments.key) found = Found{head.id, head.seq};
  }));
  if (found) return *found;
  return fail(machine_known ? Code::unknown_instance : Code::unknown_machine,
              machine_known
                  ? fmt::format("no {} has the key \"{}\"", arguments.machine, arguments.key)
                  : fmt::format("the store holds no instance of a machine \"{}\"; `pawl store info` "
                                "lists them",
                                arguments.machine));
}

int history(const Arguments& arguments) {
  const auto store = open(arguments);
  if (!store) return report(store.error());
  const auto found = find_instance(**store, arguments);
  if (!found) return report(found.error());
  auto entries = (*store)->history(found->id, found->head, arguments.before, arguments.limit);
  if (!entries) return report(entries.error());
  for (auto& entry : *entries) entry.key = arguments.key;
  const Seq rest = entries->empty() ? 0 : entries->back().prev;
  const bool truncated = rest != 0 && rest <= (*store)->info().horizon;
  const Seq next = rest == 0 || truncated ? 0 : entries->back().seq;
  if (arguments.json) {
    JsonWriter out;
    out.begin_object().key("machine").string(arguments.machine).key("key").string(arguments.key);
    write_entries(out, *entries);
    out.key("truncated").boolean(truncated).key("next").integer(next).end_object();
    return print_json(out.take());
  }
  Table table({"SEQ", "TIME", "KIND", "EVENT", "STATE", "VERSION", "DATA"});
  for (const auto& entry : *entries) {
    table.add({std::to_string(entry.seq), to_string(entry.at), enum_name(entry.kind), entry.event,
               entry.state, std::to_string(entry.version), entry.data});
  }
  table.print();
  if (truncated) fmt::print("(what came before was cut away by retention)\n");
  if (next != 0) fmt::print("(more: --before {})\n", next);
  return kOk;
}

// pawl store check

int check(const Arguments& arguments) {
  const auto store = open(arguments);
  if (!store) return report(store.error());
  const auto found = (*store)->check();
  if (!found) return report(found.error());
  const int status = found->problems.empty() ? kOk : kFailed;
  if (arguments.json) {
    JsonWriter out;
    out.begin_object().key("sound").boolean(found->problems.empty());
    out.key("entries").integer(found->entries).key("heads").integer(found->heads);
    out.key("problems").begin_array();
    for (const auto& problem : found->problems) out.string(problem);
    out.end_array().end_object();
    const int printed = print_json(out.take());
    return printed == kOk ? status : printed;
  }
  for (const auto& problem : found->problems) fmt::print("{}\n", printable(problem));
  fmt::print("{}: {} entries, {} heads, {} problems\n", status == kOk ? "sound" : "damaged", found->entries,
             found->heads, found->problems.size());
  return status;
}

// pawl store repair

int repair(const Arguments& arguments) {
  // As the owner: no other process may have it open.
  const auto store = open_store_at({.where = store_address(arguments.path), .create = false});
  if (!store) return report(store.error());
  const auto done = (*store)->repair();
  if (!done) return report(done.error());
  const int status = done->left.problems.empty() ? kOk : kFailed;
  if (arguments.json) {
    JsonWriter out;
    out.begin_object().key("sound").boolean(done->left.problems.empty());
    out.key("repaired").begin_array();
    for (const auto& repaired : done->repaired) out.string(repaired);
    out.end_array().key("problems").begin_array();
    for (const auto& problem : done->left.problems) out.string(problem);
    out.end_array().end_object();
    const int printed = print_json(out.take());
    return printed == kOk ? status : printed;
  }
  for (const auto& repaired : done->repaired) fmt::print("{}\n", printable(repaired));
  for (const auto& problem : done->left.problems) fmt::print("not repaired: {}\n", printable(problem));
  fmt::print("{}: {} repaired, {} problems left\n", status == kOk ? "sound" : "damaged",
             done->repaired.size(), done->left.problems.size());
  return status;
}

}  // namespace

int run_check(const std::string& path, bool json) { return check({.path = path, .json = json}); }

void add_store(CLI::App& app, int& status) {
  auto* noun = app.add_subcommand("store", "Inspect a store's file; only repair changes it");
  noun->require_subcommand(1);
  const auto arguments = std::make_shared<Arguments>();
  const auto verb = [&](const char* name, const char* text, int (*run)(const Arguments&)) {
    auto* command = noun->add_subcommand(name, text);
    command->add_option("path", arguments->path, "the store's file")->required();
    command->add_flag("--json", arguments->json, "print JSON");
    command->callback([arguments, run, &status] { status = run(*arguments); });
    return command;
  };
  const auto limit = [&](CLI::App* command) {
    command->add_option("--limit", arguments->limit, "most entries to show")
        ->check(CLI::Range(std::size_t{1}, kMostEntries))
        ->capture_default_str();
  };
  verb("info", "Show incarnation, epoch, newest entry, horizon, and instances by machine and state", info);
  verb("check", "Check heads against the log; exits with 1 if damaged", check);
  verb("repair", "Rebuild missing heads from the log; no other process may have the store open", repair);
  auto* log_verb = verb("log", "Show entries of the log in order", log);
  log_verb->add_option("--after", arguments->after, "only entries after this one")
      ->check(CLI::NonNegativeNumber);
  limit(log_verb);
  auto* history_verb = verb("history", "Show an instance's history, newest entry first", history);
  history_verb->add_option("machine", arguments->machine, "the machine's stored name")->required();
  history_verb->add_option("key", arguments->key, "the instance's key")->required();
  history_verb->add_option("--before", arguments->before, "only entries before this one")
      ->check(CLI::NonNegativeNumber);
  limit(history_verb);
}

}  // namespace pawl::cli
