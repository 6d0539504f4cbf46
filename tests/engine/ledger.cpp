// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/ledger.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace pawl::test {
namespace {

constexpr std::int64_t kCounters = 10;
constexpr const char* kTakings = "takings";

std::vector<LogEvent> whole_log(World& world, std::vector<std::string>& problems) {
  std::vector<LogEvent> log;
  auto follow = world->subscribe("begin");
  while (follow) {
    auto page = follow->poll(10'000);
    if (!page) {
      problems.push_back(page.error().to_string());
      break;
    }
    if (page->empty()) break;
    log.insert(log.end(), std::make_move_iterator(page->begin()), std::make_move_iterator(page->end()));
  }
  return log;
}

std::multiset<std::string> column(World& world, const char* text, std::vector<std::string>& problems) {
  std::multiset<std::string> values;
  const auto rows = world->query({.text = text});
  if (!rows) problems.push_back(rows.error().to_string());
  if (!rows) return values;
  for (const auto& row : *rows) values.insert(std::get<std::string>(row.front().get()));
  return values;
}

/// Checks the log itself: numbers, times and the versions of each instance are consecutive.
void check_order(const std::vector<LogEvent>& log, bool gaps, std::vector<std::string>& problems) {
  std::int64_t seq = 0;
  Time at{};
  std::map<InstanceId, std::int64_t> versions;
  for (const auto& event : log) {
    if (gaps ? event.seq <= seq : event.seq != seq + 1)
      problems.push_back(fmt::format("the log goes from {} to {}", seq, event.seq));
    if (event.at <= at) problems.push_back(fmt::format("log time goes back at {}", event.seq));
    if (event.version != ++versions[event.id])
      problems.push_back(fmt::format("entry {}: version {} of {}", event.seq, event.version, event.key));
    seq = event.seq;
    at = event.at;
  }
}

void check_heads(World& world, const std::vector<LogEvent>& log, std::vector<std::string>& problems) {
  std::map<InstanceId, const LogEvent*> newest;
  for (const auto& event : log) newest[event.id] = &event;
  const auto page = world->list({.limit = 10'000});
  if (!page) return problems.push_back(page.error().to_string());
  if (page->instances.size() != newest.size())
    problems.push_back(fmt::format("{} heads, {} instances", page->instances.size(), newest.size()));
  for (const auto& instance : page->instances) {
    const auto* event = newest[instance.id];
    if (event == nullptr || event->version != instance.version || event->data != instance.data)
      problems.push_back(instance.key + " differs from its newest entry");
  }
}

}  // namespace

Machines ledger_machines() {
  Machines made;
  made.add<counter>().add<order>();
  made.work<order, Charge>("charge",
                           [](const WorkContext& context, const Charge& charge) -> Result<Reply> {
                             if (charge.cents % 7 == 0) return fail(Code::timed_out, "the bank is closed");
                             return reply(Charged{std::string(context.key)});
                           },
                           {.retry = kNever});
  return made;
}

EngineOptions ledger_options() {
  return {.schema = {{.text = "CREATE TABLE IF NOT EXISTS applied(number TEXT PRIMARY KEY)"},
                     {.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}},
          .checkpoint_every = 50ms};
}

void Ledger::submit(World& world, Transaction transaction) {
  ++submitted_;
  world->submit(std::move(transaction), [this](Result<std::vector<Instance>> outcome) {
    ++answered_;
    if (!outcome) return errors_.push_back(std::move(outcome).error());
    for (auto& instance : *outcome) acknowledged_.push_back(std::move(instance));
  });
}

void Ledger::begin(World& world) {
  for (std::int64_t i = 0; i < kCounters; ++i)
    submit(world, Transaction{}.create<counter>(fmt::format("c{}", i)));
  submit(world, Transaction{}.create<counter>(kTakings));
  world.simulation().run_until([&] { return answered_ == submitted_; });
}

void Ledger::burst(World& world, std::size_t count, bool tolerate) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = ++number_;
    submit(world, Transaction{}
                      .send<counter>(fmt::format("c{}", number % kCounters), Add{static_cast<int>(number)})
                      .sql({.text = "INSERT INTO applied(number) VALUES(?1)",
                            .rows = {{std::to_string(number)}},
                            .expect = 1})
                      .request_id(std::to_string(number)));
    if (number % 9 != 0) continue;
    const auto key = fmt::format("o{}", ++orders_);
    submit(world, Transaction{}.create<order>(key, {.cents = static_cast<int>(orders_), .tell = kTakings}));
    submit(world, Transaction{}.send<order>(key, Place{}));
  }
  world.simulation().run_until([&] { return answered_ == submitted_; });
  if (tolerate) return;
  for (const auto& error : errors_) ADD_FAILURE() << error.to_string();
}

LedgerAudit audit_ledger(World& world, const std::vector<Instance>& acknowledged, std::size_t count,
                         bool gaps) {
  LedgerAudit audit;
  const auto log = whole_log(world, audit.problems);
  check_order(log, gaps, audit.problems);
  check_heads(world, log, audit.problems);

  std::map<std::int64_t, const LogEvent*> by_seq;
  std::multiset<std::string> added;
  std::multiset<std::string> charged;
  for (const auto& event : log) {
    by_seq[event.seq] = &event;
    if (event.kind != "fired") continue;
    if (event.event == "Add" && event.key != kTakings)
      added.insert(std::to_string(decode<Add>(event.payload).value().amount));
    if (event.event == "Charged") charged.insert(event.key);
  }
  if (!log.empty() && added != column(world, "SELECT number FROM applied", audit.problems))
    audit.problems.push_back("the rows of the additions differ from the log");
  if (!log.empty() && charged != column(world, "SELECT receipt FROM paid", audit.problems))
    audit.problems.push_back("the rows of the payments differ from the log");
  for (const auto* values : {&added, &charged}) {
    if (std::set(values->begin(), values->end()).size() != values->size())
      audit.problems.push_back("something happened twice");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto& answer = acknowledged[i];
    const auto found = by_seq.find(answer.seq);
    const auto* event = found == by_seq.end() ? nullptr : found->second;
    if (event != nullptr && event->id == answer.id && event->version == answer.version &&
        event->data == answer.data && event->state == answer.state)
      continue;
    ++audit.lost;
    audit.problems.push_back(
        fmt::format("lost: {} version {}, acknowledged as entry {}", answer.key, answer.version, answer.seq));
  }
  return audit;
}

std::vector<std::string> settle_ledger(World& world) {
  world.simulation().run_for(1h);
  std::vector<std::string> problems;
  std::int64_t paid = 0;
  const auto page = world->list({.machine = "order", .limit = 10'000});
  if (!page) return {page.error().to_string()};
  for (const auto& instance : page->instances) {
    paid += instance.state == "paid" ? 1 : 0;
    const bool over = instance.state == "paid" || instance.state == "expired" || instance.state == "cart";
    if (!over || !instance.timers.empty() || !instance.work.empty())
      problems.push_back(instance.key + " is still " + instance.state);
  }
  std::int64_t told = 0;
  for (const auto& event : whole_log(world, problems)) {
    if (event.kind == "fired" && event.event == "Add" && event.key == kTakings) ++told;
  }
  if (told != paid) problems.push_back(fmt::format("{} payments, {} messages", paid, told));
  return problems;
}

}  // namespace pawl::test
