// SPDX-License-Identifier: Apache-2.0
// Executes what `decide` says.
#include "supervise/core.hpp"
#include "supervise/decision.hpp"

namespace pawl {

using supervise::Activity;
using supervise::Membership;

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace

void SupervisorCore::evaluate(Node& node) {
  if (node.is_removed()) return;
  if (node.is_committing()) {
    node.activity = Activity::committing_changed;
    return;
  }
  if (const auto mapped =
          node.parent != nullptr ? supervise::mapped_intent(*node.parent, node) : std::nullopt;
      mapped && mapped != node.data->mapped)
    return commit(node, worker_event::Mapped{mapped});
  reconcile(node);
  auto now = context();
  if (drain_) {
    const auto levels = static_cast<std::int64_t>(height(node) - 1);
    now.drain_until = drain_->began + drain_->base * levels;
  }
  auto outcome = supervise::decide(node, now);
  if (outcome.asked) ++stats_.decisions;
  if (outcome.stopping && !node.stopping) node.moves = 0;  // stopping has a count of its own
  node.stopping = outcome.stopping;
  execute(node, std::move(outcome.actions));
  schedule(node);
}

supervise::DecisionContext SupervisorCore::context() const {
  return {.options = options_, .now = runtime_.instant(), .wall_time = runtime_.now(), .attached_at = start_};
}

void SupervisorCore::execute(Node& node, std::vector<supervise::Action> actions) {
  namespace action = supervise::action;
  for (auto& one : actions) {
    std::visit(Overloaded{[&](action::Commit& a) { commit(node, a.event); },
                          [&](action::SetReason& a) { set_reason(node, std::move(a.reason)); },
                          [&](action::SetHealth& a) { set_health(node, a.health); },
                          [&](action::DecideAt& a) { node.again = a.at; },
                          [&](action::RestartBy& a) { node.restart_by = a.at; },
                          [&](action::RemoveChildren&) {
                            node.membership = Membership::leaving;
                            reconcile(node);
                          },
                          [&](action::KeepChildren&) {
                            node.membership = Membership::wanted;
                            node.reconciled = false;
                          },
                          [&](action::StopCollection&) { stop_collection(node); },
                          [&](action::RestartCollecting&) { restart_collecting(node); },
                          [&](action::RestartUnobserved&) { restart_unobserved(node); },
                          [&](action::CloseBreaker&) { node.breaker->probe_at.reset(); },
                          [&](action::RecordException& a) { record_exception(node, a.error); },
                          [&](action::Trace& a) { options_.trace(a.entry); }},
               one);
  }
}

void SupervisorCore::restart_node(Node& node) {
  ++stats_.restarts;
  reset_node(node);
  derive(node);
}

void SupervisorCore::record_exception(Node& node, const Error& error) {
  ++stats_.exceptions;
  log_throttled(node, "a worker threw", error);
  if (!node.breaker) node.breaker = std::make_unique<supervise::Breaker>();
  auto& breaker = *node.breaker;
  node.again = supervise::record_exception(breaker, node.identity->path, error, options_, runtime_.instant());
  if (node.again == breaker.probe_at) set_health(node, Health::open);
}

/// Sets the present reason; only a commit stores it.
void SupervisorCore::set_reason(Node& node, Reason reason) {
  if (node.reason.text() == reason.text()) return;
  node.reason = std::move(reason);
  update_parent_view(node);
}

void SupervisorCore::set_health(Node& node, Health health) {
  if (node.health == health) return;
  node.health = health;
  update_parent_view(node);
  if (node.parent != nullptr) node.parent->again = runtime_.instant();
  if (node.parent != nullptr) schedule(*node.parent);
}

}  // namespace pawl
