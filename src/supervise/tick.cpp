// SPDX-License-Identifier: Apache-2.0
// When which worker is looked at.
#include <algorithm>

#include "supervise/core.hpp"

namespace pawl {

std::int64_t SupervisorCore::tick_of(Instant at) const {
  if (at <= start_) return 0;
  return (at - start_ + options_.tick - Duration(1)) / options_.tick;
}

void SupervisorCore::tick() {
  timer_.reset();
  ++stats_.ticks;
  const auto now = (runtime_.instant() - start_) / options_.tick;
  wheel_.advance(now, [this](supervise::WheelLink& due) { service(static_cast<Node&>(due)); });
  if (options_.strict) {
    for (std::size_t at = 0; at < all_.size(); ++at) evaluate(*all_[at]);
  }
  if (drain_) continue_drain();
  arm();
}

/// Sets the timer for what is due next.
void SupervisorCore::arm() {
  auto next = wheel_.next();
  const auto now = (runtime_.instant() - start_) / options_.tick;
  if (options_.strict || drain_) next = now + 1;
  if (next == supervise::WheelLink::kNever || stopped_) return;
  if (timer_ && timer_tick_ <= next) return;
  if (timer_) lane_->cancel(*timer_);
  timer_tick_ = next;
  const auto delay = start_ + options_.tick * next - runtime_.instant();
  timer_ = lane_->after(delay, [this] { tick(); });
}

/// Something is due: an observation, a limit, a decision that was put off.
void SupervisorCore::service(Node& node) {
  watch_sight(node);
  observe(node);
  const bool reconciles = has_to_reconcile(node);
  const bool decides = (node.again && *node.again <= runtime_.instant()) ||
                       (node.restart_by && *node.restart_by <= runtime_.instant()) || drain_ || reconciles;
  if (decides) {
    node.again.reset();
    if (reconciles) node.reconciled = false;
    evaluate(node);
  } else {
    schedule(node);
  }
}

/// When the worker's sight has to be looked at: for the next collection, or because one does not come.
Instant SupervisorCore::sight_due(const Node& node) const {
  const auto& sight = node.sight;
  const auto now = runtime_.instant();
  const auto every = node.type->observe_every.value_or(options_.observe_every);
  auto due = sight.collecting ? sight.began + options_.observe_timeout : sight.next;
  if (sight.collecting && sight.late) due = Instant::max();
  const auto from = sight.seen.value_or(sight.since);
  const auto stale = from + std::max(options_.stale_after, 2 * every + options_.observe_timeout);
  const auto lost = from + sight.waited + std::max(options_.lost_after, 3 * every + options_.observe_timeout);
  if (now < stale) return std::min(due, stale);
  if (sight.collecting && !sight.begun) return due;
  if (now < lost) return std::min(due, lost);
  return std::min(due, sight.last_restart + collector_pause(node));
}

/// The next time at which something is due by itself.
void SupervisorCore::schedule(Node& node) {
  if (node.gone) return;
  auto due = node.desired ? sight_due(node) : Instant::max();
  auto sooner = [&due](std::optional<Instant> at) {
    if (at) due = std::min(due, *at);
  };
  sooner(node.again);
  if (!node.reconciled && has_to_reconcile(node)) sooner(runtime_.instant());
  if (node.data->restart) sooner(node.restart_by);
  for (const auto& [_, birth] : node.births) {
    if (!birth.under_way && !birth.retired && birth.failures > 0) sooner(birth.not_before);
  }
  if (due == Instant::max()) return wheel_.remove(node);
  const auto tick = (runtime_.instant() - start_) / options_.tick;
  wheel_.set(node, std::max(tick_of(due), tick + 1));
  if (!timer_ || node.due < timer_tick_) arm();
}

}  // namespace pawl
