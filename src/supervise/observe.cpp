// SPDX-License-Identifier: Apache-2.0
// Collecting observations, and what follows if none comes.
#include <fmt/format.h>

#include <algorithm>

#include "supervise/core.hpp"
#include "supervise/text.hpp"

namespace pawl {

using Collection = supervise::Freshness::Collection;

/// Queues a collection if one is due.
void SupervisorCore::observe(Node& node) {
  if (node.is_removed() || node.freshness.is_collecting() || !node.desired ||
      node.freshness.next > runtime_.instant())
    return;
  // The incarnation that follows the last attempt gets one more.
  if (node.gave_up_collecting && !collectors_->may_start(node, options_.collector_restarts + 2)) {
    node.freshness.next = runtime_.instant() + options_.observe_every;
    return;
  }
  node.freshness.collection = Collection::queued;
  node.freshness.asked = node.freshness.began = runtime_.instant();
  node.freshness.ticket = last_ticket_ = collectors_->add(node.shared_from_this(), node.tools, node.slow);
}

/// Finds out whether the collection has left the queue of the pool.
void SupervisorCore::update_queued(Node& node) {
  auto& freshness = node.freshness;
  if (freshness.collection != Collection::queued) return;
  const auto started = collectors_->started_at(freshness.ticket);
  freshness.began = started.value_or(runtime_.instant());
  if (!started) return;
  freshness.collection = Collection::running;
  freshness.waited += *started - freshness.asked;
}

void SupervisorCore::take_observations() {
  if (stopped_) return;
  for (auto& one : collectors_->take()) collection_ended(std::move(one));
}

void SupervisorCore::collection_ended(supervise::CollectionResult one) {
  auto& node = *one.node;
  auto& freshness = node.freshness;
  if (node.is_removed() || !freshness.is_collecting() || freshness.ticket != one.ticket)
    return;  // abandoned meanwhile
  if (std::exchange(freshness.collection, Collection::none) == Collection::queued)
    freshness.waited += one.began - freshness.asked;
  node.slow = one.ended - one.began >= options_.observe_timeout / 4;
  ++stats_.collections;
  const auto now = runtime_.instant();
  const auto every = node.type->observe_every.value_or(options_.observe_every);
  // From when it was due, not from when it began: otherwise the interval would grow with each one.
  freshness.next = freshness.again ? now : std::max(freshness.next + every, now);
  freshness.again = false;
  if (!one.observation) {
    ++stats_.collections_failed;
    if (one.observation.error().code() == Code::worker_threw) ++stats_.exceptions;
    freshness.error = supervise::as_utf8(one.observation.error().to_string());
    log_throttled(node, "a worker could not be observed", one.observation.error());
    observe(node);
    return schedule(node);
  }
  freshness.seen = now;
  freshness.seen_ticket = one.ticket;
  freshness.restarts = 0;
  freshness.waited = {};
  freshness.error.clear();
  node.moves = 0;
  const bool is_new = !node.data->observed || node.data->observed->text != one.observation->text;
  node.unsaved = is_new ? std::optional(std::move(one.observation->text)) : std::nullopt;
  const bool first = !node.observed;
  node.observed = std::move(one.observation->value);
  observe(node);
  const bool waits = node.acted || node.health != Health::good;
  // Also if no decision follows: at rest, or while an action runs.
  if (node.health == Health::unobserved || node.health == Health::stale || node.health == Health::lost)
    set_health(node, node.config_error ? Health::config_error : Health::good);
  if (is_new || first || waits) {
    evaluate(node);
  } else {
    schedule(node);
  }
}

void SupervisorCore::stop_collection(Node& node) {
  auto& freshness = node.freshness;
  freshness.collection = Collection::late;
  ++stats_.collections_failed;
  freshness.error =
      fmt::format("collecting took longer than {} ms",
                  std::chrono::duration_cast<std::chrono::milliseconds>(options_.observe_timeout).count());
  collectors_->ask_to_stop(freshness.ticket);
}

void SupervisorCore::restart_collecting(Node& node) {
  auto& freshness = node.freshness;
  ++freshness.restarts;
  ++stats_.collector_restarts;
  freshness.last_restart = runtime_.instant();
  options_.log.warn("collecting is restarted",
                    {{"worker", node.identity->path}, {"restart", freshness.restarts}});
  give_up_collecting(node);
  freshness.collection = Collection::none;
  freshness.next = runtime_.instant();
}

void SupervisorCore::restart_unobserved(Node& node) {
  if (node.is_committing()) return;
  // If the event is refused, the next attempt follows after the same pause.
  node.freshness.last_restart = runtime_.instant();
  const Error error(Code::not_observed,
                    fmt::format("not observed although collecting was restarted {} times; last error: {}",
                                node.freshness.restarts, node.freshness.error));
  log_throttled(node, "a worker is restarted", error);
  commit(node, worker_event::RestartAsked{error.message()});
}

}  // namespace pawl
