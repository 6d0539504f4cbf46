// SPDX-License-Identifier: Apache-2.0
#include "cli/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "cli/source.hpp"

namespace pawl::cli {
namespace {

void line(std::string_view label, std::string_view value, Style style = Style::plain) {
  fmt::print("{} {}\n", paint(fmt::format("{:<10}", label), Style::dim), paint(printable(value), style));
}

}  // namespace

Style state_style(bool finished) { return finished ? Style::dim : Style::good; }

std::string ago(std::string_view time) {
  const auto parsed = parse_time(time);
  if (!parsed) return {};
  return relative(*parsed, std::chrono::floor<Duration>(std::chrono::system_clock::now()));
}

std::string when(std::string_view time) {
  return time.empty() ? std::string() : fmt::format("{} ({})", to_seconds(time), ago(time));
}

std::string compact(JsonValue object, std::string_view name) {
  const auto found = object.find(name);
  if (!found || found->kind() == JsonKind::null || (found->kind() == JsonKind::object && found->size() == 0))
    return {};
  return found->to_text();
}

std::vector<std::pair<std::string, std::string>> states_in_order(JsonValue machines) {
  std::vector<std::pair<std::string, std::string>> order;
  const auto list = machines.find("machines");
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const auto name = text_of(list->at(i), "name");
    const auto definition = list->at(i).find("definition");
    const auto states = definition ? definition->find("states") : std::nullopt;
    for (std::size_t j = 0; states && j < states->size(); ++j)
      order.emplace_back(name, text_of(states->at(j), "name"));
    // A store knows no definition, and a server may hold states that its program has forgotten.
    const auto counts = list->at(i).find("counts");
    for (std::size_t j = 0; counts && j < counts->size(); ++j) {
      const std::pair state(name, std::string(counts->key_at(j)));
      if (std::ranges::find(order, state) == order.end()) order.push_back(state);
    }
  }
  return order;
}

void show_instance(JsonValue instance) {
  const auto finished = instance.find("finished");
  const bool over = finished && finished->as_boolean().value_or(false);
  line("machine", text_of(instance, "machine"));
  line("key", text_of(instance, "key"), Style::key);
  line("state", text_of(instance, "state") + (over ? " (finished)" : ""), state_style(over));
  line("version", fmt::format("{} (generation {}, entry {})", number_of(instance, "version"),
                              number_of(instance, "generation"), number_of(instance, "seq")));
  if (const auto partition = text_of(instance, "partition"); !partition.empty()) line("partition", partition);
  line("created", when(text_of(instance, "created_at")));
  line("changed", when(text_of(instance, "at")));
  if (const auto legal = instance.find("legal"); legal && legal->size() > 0) {
    std::string events;
    for (std::size_t i = 0; i < legal->size(); ++i) {
      events += fmt::format("{}{}", i == 0 ? "" : ", ", legal->at(i).as_string().value_or(""));
    }
    line("accepts", events);
  }
  if (const auto timers = instance.find("timers")) {
    for (std::size_t i = 0; i < timers->size(); ++i) {
      const auto timer = timers->at(i);
      line("timer",
           fmt::format("{} sends {} at {}", text_of(timer, "name"), text_of(timer, "event"),
                       when(text_of(timer, "due"))),
           Style::busy);
    }
  }
  if (const auto work = instance.find("work")) {
    for (std::size_t i = 0; i < work->size(); ++i) {
      const auto piece = work->at(i);
      const auto attempt = number_of(piece, "attempt");
      line("work",
           fmt::format("{} {}", text_of(piece, "name"),
                       attempt == 0 ? "waits for a permit" : fmt::format("in attempt {}", attempt)),
           Style::busy);
    }
  }
  // The text is made printable where it is put together: its line ends are meant.
  if (const auto data = instance.find("data")) {
    fmt::print("{} {}\n", paint(fmt::format("{:<10}", "data"), Style::dim), pretty(*data, 11));
  }
}

}  // namespace pawl::cli
