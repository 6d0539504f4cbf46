// SPDX-License-Identifier: Apache-2.0
// Deadlines: when each worker is evaluated.
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

/// Sets the timer for the next deadline.
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

/// Serves a deadline: a collection, a time limit or a postponed decision.
void SupervisorCore::service(Node& node) {
  update_queued(node);
  if (node.desired) execute(node, supervise::check_freshness(node, context()));
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

/// Sets the next deadline of a worker.
void SupervisorCore::schedule(Node& node) {
  if (node.is_removed()) return;
  auto due = supervise::next_deadline(node, context());
  if (!node.reconciled && has_to_reconcile(node)) due = std::min(due, runtime_.instant());
  if (due == Instant::max()) return wheel_.remove(node);
  const auto tick = (runtime_.instant() - start_) / options_.tick;
  wheel_.set(node, std::max(tick_of(due), tick + 1));
  if (!timer_ || node.due < timer_tick_) arm();
}

}  // namespace pawl
