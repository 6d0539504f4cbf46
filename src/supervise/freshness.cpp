// SPDX-License-Identifier: Apache-2.0
#include "supervise/freshness.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::supervise {

using Collection = Freshness::Collection;

namespace {

/// The ages of the last observation at which a worker becomes stale and lost. Workers that are observed more
/// rarely have more time.
struct Limits {
  Limits(const NodeState& node, const SupervisorOptions& options) {
    const auto every = observe_interval(*node.type, options);
    stale = std::max(options.stale_after, 2 * every + options.observe_timeout);
    lost = std::max(options.lost_after, 3 * every + options.observe_timeout);
  }
  Duration stale;
  Duration lost;
};

/// The pause after the last restart of collecting; it grows with their number.
Duration restart_pause(const Freshness& freshness) {
  return std::chrono::seconds(2) * (freshness.restarts + 1);
}

/// When the freshness has to be checked: for the next collection, or because one is missing.
Instant freshness_due(const NodeState& node, const DecisionContext& context) {
  const auto& freshness = node.freshness;
  const Limits limits(node, context.options);
  auto due = freshness.is_collecting() ? freshness.began + context.options.observe_timeout : freshness.next;
  if (freshness.collection == Collection::late) due = Instant::max();
  const auto from = freshness.seen.value_or(freshness.since);
  if (context.now < from + limits.stale) return std::min(due, from + limits.stale);
  if (freshness.collection == Collection::queued) return due;
  const auto lost = from + freshness.waited + limits.lost;
  if (context.now < lost) return std::min(due, lost);
  return std::min(due, freshness.last_restart + restart_pause(freshness));
}

}  // namespace

std::vector<Action> check_freshness(const NodeState& node, const DecisionContext& context) {
  const auto& freshness = node.freshness;
  std::vector<Action> actions;
  const auto review = [&] {
    if (node.health == Health::good && freshness.seen) {
      auto more = review_health(node, context);
      std::ranges::move(more, std::back_inserter(actions));
    }
  };
  if (freshness.collection == Collection::queued) {
    review();
    return actions;
  }
  const auto& options = context.options;
  if (freshness.collection == Collection::running && context.now - freshness.began >= options.observe_timeout)
    actions.emplace_back(action::StopCollection{});
  const auto age = context.now - freshness.seen.value_or(freshness.since) - freshness.waited;
  if (age < Limits(node, options).lost) {
    review();
    return actions;
  }
  if (node.health != Health::lost) actions.emplace_back(action::SetHealth{Health::lost});
  if (freshness.restarts > 0 && context.now - freshness.last_restart < restart_pause(freshness))
    return actions;
  if (freshness.restarts < options.collector_restarts) {
    actions.emplace_back(action::RestartCollecting{});
  } else if (!node.data->restart) {
    actions.emplace_back(action::RestartUnobserved{});
  }
  return actions;
}

Instant next_deadline(const NodeState& node, const DecisionContext& context) {
  auto due = node.desired ? freshness_due(node, context) : Instant::max();
  if (node.again) due = std::min(due, *node.again);
  if (node.data->restart && node.restart_by) due = std::min(due, *node.restart_by);
  for (const auto& [_, child] : node.pending_children) {
    if (child.state == PendingChild::State::failed) due = std::min(due, child.not_before);
  }
  return due;
}

}  // namespace pawl::supervise
