// SPDX-License-Identifier: Apache-2.0
#include "workers/recent_history.hpp"

#include <algorithm>
#include <optional>

#include "pawl/codec.hpp"
#include "pawl/json.hpp"

namespace pawl::workers {
namespace {

constexpr JsonLimits kEventLimits{.depth = 64, .bytes = std::size_t{64} << 20};
constexpr std::string_view kCreated = "created";

std::string text_in(const JsonValue& object, std::string_view name) {
  const auto found = object.kind() == JsonKind::object ? object.find(name) : std::nullopt;
  return found ? std::string(found->as_string().value_or("")) : std::string();
}

EventView view_event(const LogEvent& event) {
  EventView made{.at = pawl::to_string(event.at), .event = event.event, .state = event.state};
  if (made.event.empty()) made.event = event.kind;
  const auto payload = JsonDocument::parse(event.payload, kEventLimits);
  if (!payload) return made;
  const auto root = payload->root();
  made.action = text_in(root, "action");
  made.reason = text_in(root, "reason");
  made.error = text_in(root, "error");
  if (made.reason.empty()) made.reason = text_in(root, "intent");
  return made;
}

/// The version of the configuration that the worker had after the event; 0 if it cannot be read.
std::int64_t version_after(const LogEvent& event) {
  const auto data = JsonDocument::parse(event.data, kEventLimits);
  if (!data || data->root().kind() != JsonKind::object) return 0;
  const auto version = data->root().find("desired_version");
  return version ? version->as_integer().value_or(0) : 0;
}

bool has_observed(const LogEvent& event) {
  if (event.event == "Observed") return true;
  const auto payload = JsonDocument::parse(event.payload, kEventLimits);
  const auto observed =
      payload && payload->root().kind() == JsonKind::object ? payload->root().find("observed") : std::nullopt;
  return observed && observed->kind() != JsonKind::null;
}

/// Sets the version of each event. An error belongs to the configuration with which its action was ordered,
/// and a restart to the one with which it was asked for.
void set_versions(const std::vector<LogEvent>& log, std::vector<EventView>& events) {
  std::optional<std::int64_t> ordered;
  std::optional<std::int64_t> asked;
  for (std::size_t i = log.size(); i-- > 0;) {
    const auto version = version_after(log[i]);
    const auto& name = events[i].event;
    if (log[i].kind == kCreated) ordered = asked = version;
    if (name == "Ordered") ordered = version;
    if (name == "RestartAsked") asked = version;
    auto& known = events[i].desired_version;
    // The first configuration has no earlier one.
    const auto since = [version](const std::optional<std::int64_t>& then) {
      return then.value_or(version == 1 ? 1 : 0);
    };
    known = name == "Ended" ? since(ordered) : name == "Restarted" ? since(asked) : version;
  }
}

}  // namespace

Result<RecentHistory> read_recent_history(const Engine& engine, const std::string& machine,
                                          const WorkerView& worker, Time now, std::size_t limit) {
  PAWL_TRY(const auto history, engine.history(machine, worker.identity.path, 0, limit));
  const auto& log = history.events;
  RecentHistory recent;
  for (const auto& event : log) recent.events.push_back(view_event(event));
  set_versions(log, recent.events);

  // The events of the present configuration are the newest; `change` is the one that began it.
  const auto change =
      static_cast<std::size_t>(std::ranges::find_if(log,
                                                    [&](const LogEvent& event) {
                                                      return event.kind == kCreated ||
                                                             event.event == "Desired" ||
                                                             version_after(event) != worker.desired_version;
                                                    }) -
                               log.begin());
  for (std::size_t i = change; i < log.size(); ++i) {
    const auto data = decode<WorkerData>(log[i].data, kEventLimits);
    const bool is_new =
        data && data->spec != worker.spec && (recent.earlier.empty() || recent.earlier.back() != data->spec);
    if (is_new) recent.earlier.push_back(data->spec);
    // What an earlier worker of this path has left cannot be told apart by its version.
    if (i > change && std::ranges::any_of(log.begin() + static_cast<std::ptrdiff_t>(change),
                                          log.begin() + static_cast<std::ptrdiff_t>(i),
                                          [](const LogEvent& event) { return event.kind == kCreated; }))
      recent.events[i].desired_version = 0;
  }
  if (worker.desired_version <= 1) return recent;

  const auto happened = [&](auto matches) {
    return std::any_of(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(change), matches);
  };
  recent.is_reason_current =
      happened([](const LogEvent& event) { return event.event == "Moved" || event.event == "Ordered"; });
  recent.is_problem_current = recent.is_reason_current;
  const auto changed_at = log.empty() ? now : log[std::min(change, log.size() - 1)].at;
  recent.is_observed_current =
      happened(has_observed) || (worker.observed_ago && now - *worker.observed_ago > changed_at);
  return recent;
}

}  // namespace pawl::workers
