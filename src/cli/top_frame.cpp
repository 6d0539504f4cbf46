// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/source.hpp"
#include "cli/top.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kTicks = 10;         // rates are means over these
constexpr std::size_t kHistory = 40;       // of the sparkline
constexpr std::size_t kMostBusy = 10'000;  // instances remembered per tick
constexpr std::size_t kShownBusy = 10;

std::string bar_of(std::int64_t count, std::int64_t most) {
  constexpr std::int64_t kCells = 20;
  const auto full = most == 0 ? 0 : (count * kCells + most - 1) / most;
  std::string bar;
  for (std::int64_t i = 0; i < full; ++i) bar += "▪";
  return bar;
}

}  // namespace

std::string sparkline(const std::deque<double>& numbers) {
  constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double most = 0;
  for (const auto number : numbers) most = std::max(most, number);
  std::string line;
  for (const auto number : numbers) {
    line += kBars[most > 0 ? static_cast<std::size_t>(number / most * (kBars.size() - 1) + 0.5) : 0];
  }
  return line;
}

void TopModel::note_machines(JsonValue root) {
  for (const auto& [machine, state] : states_in_order(root)) order_.emplace_back(machine, state);
}

void TopModel::note_entry(JsonValue entry) {
  const auto machine = text_of(entry, "machine");
  ++present_.entries;
  ++present_.states[{machine, text_of(entry, "state")}];
  const std::pair instance(machine, text_of(entry, "key"));
  if (present_.instances.size() >= kMostBusy && !present_.instances.contains(instance)) return;
  auto& busy = present_.instances[instance];
  ++busy.entries;
  busy.event = text_of(entry, "event");
  if (busy.event.empty()) busy.event = text_of(entry, "kind");
  busy.state = text_of(entry, "state");
  const auto finished = entry.find("finished");
  busy.finished = finished && finished->as_boolean().value_or(false);
}

void TopModel::note_stats(JsonValue stats, double seconds) {
  gauges_.clear();
  counts_.clear();
  for (std::size_t i = 0; i < stats.size(); ++i) {
    if (const auto value = stats.at(i).as_integer()) gauges_[std::string(stats.key_at(i))] = *value;
  }
  if (const auto machines = stats.find("counts")) {
    for (std::size_t i = 0; i < machines->size(); ++i) {
      const auto states = machines->at(i);
      for (std::size_t j = 0; j < states.size(); ++j) {
        counts_.push_back({{std::string(machines->key_at(i)), std::string(states.key_at(j))},
                           states.at(j).as_integer().value_or(0)});
      }
    }
  }
  std::ranges::sort(counts_, {}, [this](const auto& one) {
    return std::pair(std::ranges::find(order_, one.first) - order_.begin(), one.first);
  });
  Counters now{.transitions = static_cast<std::int64_t>(present_.entries)};
  const bool counted = gauges_.contains("transitions");
  if (counted) now = {.transitions = gauges_["transitions"], .commits = gauges_["commits"]};
  // A restarted server counts from 0.
  const bool known = !counted || (last_.transitions >= 0 && now.transitions >= last_.transitions);
  const auto entries = !known ? 0 : counted ? now.transitions - last_.transitions : now.transitions;
  const auto commits = known && counted ? now.commits - last_.commits : 0;
  last_ = now;
  if (seconds <= 0) return;  // the first one is only what the next is compared with
  rates_.push_back(static_cast<double>(entries) / seconds);
  commit_rate_ = static_cast<double>(commits) / seconds;
  if (rates_.size() > kHistory) rates_.pop_front();
  present_.seconds = seconds;
  ticks_.push_back(std::exchange(present_, {}));
  if (ticks_.size() > kTicks) ticks_.pop_front();
}

std::vector<std::string> TopModel::head(std::size_t columns, const std::string& clock) const {
  const auto rate = rates_.empty() ? 0 : rates_.back();
  std::vector<std::string> lines{
      paint(clip(fmt::format("pawl top  {}  {}", printable(name_), clock), columns), Style::head)};
  auto flow = fmt::format("{:.1f} entries/s", rate);
  if (gauges_.contains("commits")) {
    flow += fmt::format("  {:.1f} commits/s", commit_rate_);
    if (commit_rate_ > 0) flow += fmt::format("  {:.1f} entries/commit", rate / commit_rate_);
  }
  const auto graph = sparkline(rates_);
  const auto room = columns > pawl::cli::columns(flow) + 2 ? columns - pawl::cli::columns(flow) - 2 : 0;
  lines.push_back(clip(flow, columns) + "  " + paint(clip(graph, room), Style::good));
  std::string facts;
  constexpr std::array<std::pair<const char*, const char*>, 6> kFacts{{{"instances", "instances"},
                                                                       {"timers", "timers"},
                                                                       {"running_work", "work running"},
                                                                       {"queue", "waiting"},
                                                                       {"refused", "refused"},
                                                                       {"last_seq", "entries in all"}}};
  for (const auto& [member, label] : kFacts) {
    const auto found = gauges_.find(member);
    if (found == gauges_.end()) continue;
    facts += fmt::format("{}{} {}", facts.empty() ? "" : "  ", grouped(found->second), label);
  }
  lines.push_back(paint(clip(facts, columns), Style::dim));
  lines.emplace_back();
  return lines;
}

std::vector<std::string> TopModel::states(std::size_t columns) const {
  std::map<std::pair<std::string, std::string>, std::uint64_t> entered;
  double seconds = 0;
  for (const auto& tick : ticks_) {
    seconds += tick.seconds;
    for (const auto& [state, count] : tick.states) entered[state] += count;
  }
  std::int64_t most = 0;
  for (const auto& [state, count] : counts_) most = std::max(most, count);
  Table table({"MACHINE", "STATE", ">INSTANCES", ">INTO/S", ""});
  std::string before;
  for (const auto& [state, count] : counts_) {
    const auto found = entered.find(state);
    const auto rate =
        found == entered.end() || seconds <= 0 ? 0 : static_cast<double>(found->second) / seconds;
    const auto style = count == 0 && rate == 0 ? Style::dim : Style::plain;
    table.add({Cell(state.first == before ? "" : state.first), Cell(state.second, style),
               Cell(grouped(count), style), Cell(rate > 0 ? fmt::format("{:.1f}", rate) : "", Style::busy),
               Cell(bar_of(count, most), Style::good)});
    before = state.first;
  }
  return table.lines(columns);
}

std::vector<std::string> TopModel::busiest(std::size_t columns) const {
  std::map<std::pair<std::string, std::string>, Busy> sums;
  double seconds = 0;
  for (const auto& tick : ticks_) {
    seconds += tick.seconds;
    for (const auto& [instance, busy] : tick.instances) {
      const auto entries = sums[instance].entries + busy.entries;
      sums[instance] = busy;
      sums[instance].entries = entries;
    }
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Busy>> order(sums.begin(), sums.end());
  std::ranges::sort(order, [](const auto& one, const auto& other) {
    if (one.second.entries != other.second.entries) return one.second.entries > other.second.entries;
    return one.first < other.first;
  });
  if (order.size() > kShownBusy) order.resize(kShownBusy);
  Table table({fmt::format("BUSIEST, LAST {:.0f} S", seconds), "KEY", ">ENTRIES", "LAST", "STATE"});
  for (const auto& [instance, busy] : order) {
    table.add({instance.first, Cell(instance.second, Style::key), std::to_string(busy.entries), busy.event,
               Cell(busy.state, state_style(busy.finished))});
  }
  return table.lines(columns);
}

std::vector<std::string> TopModel::body(std::size_t columns) const {
  auto lines = states(columns);
  lines.emplace_back();
  for (auto& line : busiest(columns)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> TopModel::whole(Size size, const std::string& clock) const {
  auto lines = head(size.columns, clock);
  for (auto& line : body(size.columns)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> TopModel::frame(Size size, std::size_t& scroll, const std::string& clock) const {
  auto lines = head(size.columns, clock);
  const auto below = body(size.columns);
  const auto room = size.rows > lines.size() + 1 ? size.rows - lines.size() - 1 : 1;
  scroll = std::min(scroll, below.size() > room ? below.size() - room : 0);
  for (std::size_t i = scroll; i < std::min(below.size(), scroll + room); ++i) lines.push_back(below[i]);
  while (lines.size() + 1 < size.rows) lines.emplace_back();
  if (!problem_.empty()) {
    lines.push_back(paint(clip(printable(problem_), size.columns), Style::bad));
  } else {
    const auto more =
        below.size() > room ? fmt::format("  ↑↓ scroll ({} of {})", scroll + 1, below.size() - room + 1) : "";
    lines.push_back(paint(clip("q quit" + more, size.columns), Style::dim));
  }
  return lines;
}

}  // namespace pawl::cli
