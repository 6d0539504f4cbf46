// SPDX-License-Identifier: Apache-2.0
// Reads a store directly, beside its owner or without one. Machines, states and keys have their stored names,
// and nothing is known of what a state accepts: that is in the program that wrote them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "cli/source.hpp"
#include "kernel/engine/records.hpp"
#include "kernel/engine/show.hpp"
#include "kernel/suggestion.hpp"
#include "pawl/codec.hpp"
#include "pawl/http.hpp"
#include "pawl/instance.hpp"
#include "server/render.hpp"
#include "store/store.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kFeedPage = 256;

/// A head whose texts outlive the call that showed it; the data is not read yet.
Result<Instance> to_instance(const StoredHead& head) {
  Instance made{.id = head.id,
                .machine = std::string(head.machine),
                .key = std::string(head.key),
                .partition = std::string(head.partition),
                .state = std::string(head.state),
                .finished = head.finished,
                .version = head.version,
                .generation = head.generation,
                .seq = head.seq,
                .created_at = head.created_at,
                .at = head.at};
  if (head.extra.empty()) return made;
  PAWL_TRY(const auto extras, decode<Extras>(head.extra));
  made.timers = timers_of(extras);
  made.work = work_of(extras);
  return made;
}

/// The entry of an instance whose key is known. Without a server a cursor is the number alone.
LogEvent event_of(Entry entry, std::string key) {
  auto cursor = std::to_string(entry.seq);
  auto event = to_event(std::move(entry), std::move(cursor));
  event.key = std::move(key);
  return event;
}

bool is_private(std::string_view machine) { return machine.starts_with(http::kPrivateMachines); }

Result<JsonDocument> document(JsonWriter& out) {
  PAWL_TRY(const auto text, out.take());
  return parse_answer(text);
}

Result<std::optional<Time>> optional_time(const std::string& text) {
  if (text.empty()) return std::nullopt;
  PAWL_TRY(const auto time, parse_time(text));
  return time;
}

std::string list_cursor(const Instance& instance) {
  return fmt::format("{}.{}", instance.created_at.time_since_epoch().count(), instance.id.to_string());
}

class StoreFeed final : public Feed {
 public:
  StoreFeed(std::shared_ptr<Store> store, FeedQuery query, Seq after)
      : store_(std::move(store)), query_(std::move(query)), after_(after) {}

  Result<std::vector<std::string>> next(Duration most) override {
    std::vector<std::string> wanted;
    PAWL_TRY(const auto more, store_->wait(after_, most));
    if (!more) return wanted;
    PAWL_TRY(auto entries, store_->feed(after_, kFeedPage));
    for (auto& entry : entries) {
      after_ = entry.seq;
      if (is_private(entry.machine)) continue;
      PAWL_TRY(auto key, key_of(entry));
      const auto event = event_of(std::move(entry), std::move(key));
      const auto fits = [](const std::string& asked, const std::string& is) {
        return asked.empty() || asked == is;
      };
      if (!fits(query_.machine, event.machine) || !fits(query_.key, event.key) ||
          !fits(query_.state, event.state) || !fits(query_.kind, event.kind)) {
        continue;
      }
      JsonWriter out;
      server::write_event(out, event, true);
      PAWL_TRY(auto text, out.take());
      wanted.push_back(std::move(text));
    }
    return wanted;
  }

 private:
  /// Only the entry that begins a generation carries its key; for the others the heads are asked, once.
  Result<std::string> key_of(const Entry& entry) {
    if (!entry.key.empty()) keys_[entry.id] = entry.key;
    if (!keys_.contains(entry.id)) {
      PAWL_CHECK(store_->load([&](const StoredHead& head) { keys_.emplace(head.id, head.key); }));
    }
    return keys_[entry.id];
  }

  std::shared_ptr<Store> store_;
  FeedQuery query_;
  Seq after_;
  std::unordered_map<InstanceId, std::string> keys_;
};

class StoreSource final : public Source {
 public:
  StoreSource(std::shared_ptr<Store> store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}

  std::string name() const override { return name_; }
  /// Each page looks at every head, so one is better than many.
  std::size_t most_page() const override { return std::numeric_limits<std::ptrdiff_t>::max(); }
  Result<JsonDocument> machines() override;
  Result<JsonDocument> instances(const InstanceQuery& query) override;
  Result<JsonDocument> instance(const std::string& machine, const std::string& key) override;
  Result<JsonDocument> history(const std::string& machine, const std::string& key, std::int64_t before,
                               std::size_t limit) override;
  Result<JsonDocument> timers(const std::string& machine, const std::string& cursor) override;
  Result<JsonDocument> stats() override;
  Result<std::unique_ptr<Feed>> follow(const FeedQuery& query,
                                       std::function<void(const std::string&)> notice) override;

 private:
  using Counts = std::map<std::string, std::map<std::string, std::uint64_t>>;

  Result<void> each(const std::function<void(Instance)>& visit);
  Result<Counts> counts();
  Result<Instance> find(const std::string& machine, const std::string& key);
  Result<void> know_machine(const std::string& machine);
  Result<void> fill_data(Instance& instance);

  std::shared_ptr<Store> store_;
  std::string name_;
};

Result<void> StoreSource::each(const std::function<void(Instance)>& visit) {
  Result<void> outcome;
  PAWL_CHECK(store_->load([&](const StoredHead& head) {
    if (!outcome || is_private(head.machine)) return;
    auto instance = to_instance(head);
    if (!instance) {
      outcome = fail(std::move(instance).error());
    } else {
      visit(*std::move(instance));
    }
  }));
  return outcome;
}

Result<StoreSource::Counts> StoreSource::counts() {
  Counts all;
  PAWL_CHECK(store_->load([&](const StoredHead& head) {
    if (!is_private(head.machine)) ++all[std::string(head.machine)][std::string(head.state)];
  }));
  return all;
}

Result<void> StoreSource::know_machine(const std::string& machine) {
  if (machine.empty()) return {};
  PAWL_TRY(const auto all, counts());
  if (all.contains(machine)) return {};
  std::vector<std::string> known;
  for (const auto& [name, states] : all) known.push_back(name);
  return fail(Code::unknown_machine, fmt::format("the store holds no instance of a machine \"{}\"{}", machine,
                                                 suggestion(machine, known)));
}

Result<void> StoreSource::fill_data(Instance& instance) {
  PAWL_TRY(auto entry, store_->head_entry(instance.id, instance.seq));
  if (entry) instance.data = std::move(entry->data);
  return {};
}

Result<Instance> StoreSource::find(const std::string& machine, const std::string& key) {
  std::optional<Instance> found;
  PAWL_CHECK(each([&](Instance instance) {
    if (instance.machine == machine && instance.key == key) found = std::move(instance);
  }));
  if (found) return *std::move(found);
  PAWL_CHECK(know_machine(machine));
  return fail(Code::unknown_instance, fmt::format("there is no {} \"{}\"", machine, key.substr(0, 128)));
}

Result<JsonDocument> StoreSource::machines() {
  PAWL_TRY(const auto all, counts());
  JsonWriter out;
  out.begin_object().key("machines").begin_array();
  for (const auto& [machine, states] : all) {
    std::uint64_t total = 0;
    out.begin_object().key("name").string(machine).key("counts").begin_object();
    for (const auto& [state, count] : states) {
      out.key(state).integer(count);
      total += count;
    }
    out.end_object().key("instances").integer(total).end_object();
  }
  out.end_array().end_object();
  return document(out);
}

/// In the order of their creation, as the engine lists them, with the same cursors.
Result<JsonDocument> StoreSource::instances(const InstanceQuery& query) {
  PAWL_CHECK(know_machine(query.machine));
  PAWL_TRY(const auto after, optional_time(query.changed_after));
  PAWL_TRY(const auto before, optional_time(query.changed_before));
  std::vector<Instance> found;
  PAWL_CHECK(each([&](Instance instance) {
    if ((query.machine.empty() || instance.machine == query.machine) &&
        (query.state.empty() || instance.state == query.state) &&
        (query.partition.empty() || instance.partition == query.partition) &&
        (!query.finished || instance.finished == *query.finished) && (!after || instance.at > *after) &&
        (!before || instance.at < *before)) {
      found.push_back(std::move(instance));
    }
  }));
  const auto order = [](const Instance& one) { return std::pair(one.created_at, one.id); };
  std::ranges::sort(found, {}, order);
  auto first = found.begin();
  if (!query.cursor.empty()) {
    const auto at = std::ranges::find(found, query.cursor, list_cursor);
    if (at == found.end()) return fail(Code::cursor_invalid, "this is not a cursor of this listing");
    first = at + 1;
  }
  const auto last = first + std::min(static_cast<std::ptrdiff_t>(query.limit), found.end() - first);
  JsonWriter out;
  out.begin_object().key("instances").begin_array();
  for (auto instance = first; instance != last; ++instance) {
    PAWL_CHECK(fill_data(*instance));
    server::write_instance(out, *instance, nullptr, http::Role::admin);
  }
  out.end_array();
  if (last != found.end()) out.key("next").string(list_cursor(*(last - 1)));
  out.end_object();
  return document(out);
}

Result<JsonDocument> StoreSource::instance(const std::string& machine, const std::string& key) {
  PAWL_TRY(auto found, find(machine, key));
  PAWL_CHECK(fill_data(found));
  JsonWriter out;
  server::write_instance(out, found, nullptr, http::Role::admin);
  return document(out);
}

Result<JsonDocument> StoreSource::history(const std::string& machine, const std::string& key,
                                          std::int64_t before, std::size_t limit) {
  PAWL_TRY(const auto found, find(machine, key));
  PAWL_TRY(auto entries, store_->history(found.id, found.seq, before, limit));
  const Seq rest = entries.empty() ? 0 : entries.back().prev;
  const Seq last = entries.empty() ? 0 : entries.back().seq;
  const bool truncated = rest != 0 && rest <= store_->info().horizon;
  JsonWriter out;
  out.begin_object().key("events").begin_array();
  for (auto& entry : entries) server::write_event(out, event_of(std::move(entry), key), true);
  out.end_array().key("truncated").boolean(truncated);
  if (rest != 0 && !truncated) out.key("next").integer(last);
  out.end_object();
  return document(out);
}

Result<JsonDocument> StoreSource::timers(const std::string& machine, const std::string&) {
  PAWL_CHECK(know_machine(machine));
  JsonWriter out;
  out.begin_object().key("timers").begin_array();
  PAWL_CHECK(each([&](const Instance& instance) {
    if (!machine.empty() && instance.machine != machine) return;
    for (const auto& timer : instance.timers) {
      out.begin_object().key("machine").string(instance.machine).key("key").string(instance.key);
      out.key("state").string(instance.state).key("name").string(timer.name);
      out.key("due").string(to_string(timer.due)).key("event").string(timer.event).end_object();
    }
  }));
  out.end_array().end_object();
  return document(out);
}

Result<JsonDocument> StoreSource::stats() {
  std::uint64_t instances = 0;
  std::uint64_t timers = 0;
  Seq last = store_->info().last;  // of when it was opened
  Counts all;
  PAWL_CHECK(each([&](const Instance& instance) {
    last = std::max(last, instance.seq);
    ++all[instance.machine][instance.state];
    ++instances;
    timers += instance.timers.size();
  }));
  JsonWriter out;
  out.begin_object().key("instances").integer(instances).key("timers").integer(timers);
  out.key("last_seq").integer(last).key("counts").begin_object();
  for (const auto& [machine, states] : all) {
    out.key(machine).begin_object();
    for (const auto& [state, count] : states) out.key(state).integer(count);
    out.end_object();
  }
  out.end_object().end_object();
  return document(out);
}

Result<std::unique_ptr<Feed>> StoreSource::follow(const FeedQuery& query,
                                                  std::function<void(const std::string&)>) {
  Seq after = store_->info().last;
  if (query.after == "begin") {
    after = store_->info().horizon;
  } else if (!query.after.empty()) {
    const auto* end = query.after.data() + query.after.size();
    if (std::from_chars(query.after.data(), end, after).ptr != end || after < 0) {
      return fail(Code::cursor_invalid, "the cursor of a store is an entry's number, or begin");
    }
  }
  return std::make_unique<StoreFeed>(store_, query, after);
}

}  // namespace

Result<std::unique_ptr<Source>> store_source(const std::string& where) {
  PAWL_TRY(std::shared_ptr<Store> store, open_store_at({.where = where, .read_only = true, .create = false}));
  // A URL may hold a password.
  auto name = where.starts_with("sqlite:") ? where.substr(7) : std::string("the PostgreSQL store");
  return std::make_unique<StoreSource>(std::move(store), std::move(name));
}

}  // namespace pawl::cli
