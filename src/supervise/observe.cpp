// SPDX-License-Identifier: Apache-2.0
// Collecting observations, and what happens when none comes.
#include <fmt/format.h>

#include <algorithm>

#include "supervise/core.hpp"
#include "supervise/text.hpp"

namespace pawl {

/// Begins a collection where one is due.
void SupervisorCore::observe(Node& node) {
  if (node.gone || node.sight.collecting || !node.desired || node.sight.next > runtime_.instant()) return;
  // The instance that is built afresh after the last attempt has one more.
  if (node.gave_up && !collectors_->may_begin(node, options_.collector_restarts + 2)) {
    node.sight.next = runtime_.instant() + options_.observe_every;
    return;
  }
  node.sight.collecting = true;
  node.sight.begun = false;
  node.sight.late = false;
  node.sight.asked = node.sight.began = runtime_.instant();
  node.sight.ticket = last_ticket_ = collectors_->add(node.shared_from_this(), node.hands, node.slow);
}

/// Whether the collection that was asked for has not begun, because others are before it. That is no fault
/// of the worker: it becomes stale by that, and nothing else.
bool SupervisorCore::stands_in_line(Node& node) {
  auto& sight = node.sight;
  if (!sight.collecting || sight.begun) return false;
  const auto begun = collectors_->begun_at(sight.ticket);
  if (!begun) {
    sight.began = runtime_.instant();  // it is looked again later
    return true;
  }
  sight.begun = true;
  sight.began = *begun;
  sight.waited += *begun - sight.asked;
  return false;
}

void SupervisorCore::take_collected() {
  if (stopped_) return;
  for (auto& one : collectors_->take()) collected(std::move(one));
}

void SupervisorCore::collected(supervise::Collected one) {
  auto& node = *one.node;
  auto& sight = node.sight;
  if (node.gone || !sight.collecting || sight.ticket != one.ticket) return;  // given up meanwhile
  sight.collecting = false;
  if (!sight.begun) sight.waited += one.began - sight.asked;
  node.slow = one.ended - one.began >= options_.observe_timeout / 4;
  ++stats_.collections;
  const auto now = runtime_.instant();
  const auto every = node.type->observe_every.value_or(options_.observe_every);
  // From when it was due, not from when it began: otherwise each would come a little later than the one
  // before.
  sight.next = sight.again ? now : std::max(sight.next + every, now);
  sight.again = false;
  if (!one.seen) {
    ++stats_.collections_failed;
    if (one.seen.error().code() == Code::worker_threw) ++stats_.exceptions;
    sight.error = supervise::as_utf8(one.seen.error().to_string());
    log_once_in_a_while(node, "a worker could not be observed", one.seen.error());
    observe(node);
    return schedule(node);
  }
  sight.seen = now;
  sight.seen_ticket = one.ticket;
  sight.restarts = 0;
  sight.waited = {};
  sight.error.clear();
  node.moves = 0;
  const bool is_new = !node.data->observed || node.data->observed->text != one.seen->text;
  node.unsaved = is_new ? std::optional(std::move(one.seen->text)) : std::nullopt;
  const bool first = !node.observed;
  node.observed = std::move(one.seen->value);
  observe(node);
  const bool waits = node.acted || node.health != Health::good;
  // Also where nothing is decided now: at rest, or while an action runs.
  if (node.health == Health::unobserved || node.health == Health::stale || node.health == Health::lost)
    set_health(node, node.config_error ? Health::config_error : Health::good);
  if (is_new || first || waits) {
    evaluate(node);
  } else {
    schedule(node);
  }
}

/// Between two attempts at collecting anew.
Duration SupervisorCore::collector_pause(const Node& node) const {
  return std::chrono::seconds(2) * (node.sight.restarts + 1);
}

/// The ladder of freshness: a collection out of time is asked to stop, one that is lost is begun anew, and a
/// worker that cannot be observed for long is built afresh.
void SupervisorCore::watch_sight(Node& node) {
  auto& sight = node.sight;
  if (!node.desired) return;
  const auto now = runtime_.instant();
  if (stands_in_line(node)) {
    if (node.health == Health::good && sight.seen) may_decide(node, false);
    return;
  }
  if (sight.collecting && !sight.late && now - sight.began >= options_.observe_timeout) {
    sight.late = true;
    ++stats_.collections_failed;
    sight.error =
        fmt::format("collecting took longer than {} ms",
                    std::chrono::duration_cast<std::chrono::milliseconds>(options_.observe_timeout).count());
    collectors_->ask_to_stop(sight.ticket);
  }
  const auto every = node.type->observe_every.value_or(options_.observe_every);
  const auto age = now - sight.seen.value_or(sight.since) - sight.waited;
  if (age < std::max(options_.lost_after, 3 * every + options_.observe_timeout)) {
    if (node.health == Health::good && node.sight.seen) may_decide(node, false);
    return;
  }
  set_health(node, Health::lost);
  if (sight.restarts > 0 && now - sight.last_restart < collector_pause(node)) return;
  if (sight.restarts >= options_.collector_restarts) return escalate(node);
  ++sight.restarts;
  ++stats_.collector_restarts;
  sight.last_restart = now;
  options_.log.warn("collecting is begun anew",
                    {{"worker", node.identity->path}, {"restart", sight.restarts}});
  give_up_collecting(node);
  sight.collecting = false;
  sight.next = now;
}

void SupervisorCore::escalate(Node& node) {
  if (node.committing || node.data->restart) return;
  node.sight.last_restart =
      runtime_.instant();  // where it is refused, it is tried again after the same pause
  const Error error(Code::not_observed,
                    fmt::format("not observed although collecting was begun anew {} times; last error: {}",
                                node.sight.restarts, node.sight.error));
  log_once_in_a_while(node, "a worker is built afresh", error);
  commit(node, worker_event::RestartAsked{error.message()});
}

}  // namespace pawl
