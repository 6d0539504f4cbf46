// SPDX-License-Identifier: Apache-2.0
// Commits of events, and what follows from them.
#include <fmt/format.h>

#include "supervise/core.hpp"
#include "supervise/text.hpp"

namespace pawl {

using supervise::Activity;

void SupervisorCore::commit(Node& node, const supervise::Event& event) {
  auto payload = std::visit([](const auto& one) { return encode(one); }, event);
  if (!payload) return record_exception(node, payload.error());
  const auto name = std::visit([]<class E>(const E&) -> std::string_view { return type_name<E>(); }, event);
  After after = nullptr;
  if (std::holds_alternative<worker_event::Removed>(event)) after = &SupervisorCore::forget;
  if (std::holds_alternative<worker_event::Restarted>(event)) after = &SupervisorCore::restart_node;
  if (std::holds_alternative<worker_event::Ordered>(event)) ++stats_.actions;
  node.activity = Activity::committing;
  engine_->submit(Transaction{}.operation({.machine = node.type->machine.name,
                                           .key = node.identity->path,
                                           .event = std::string(name),
                                           .json = *std::move(payload)}),
                  [core = weak_from_this(), node = node.shared_from_this(),
                   after](Result<std::vector<Instance>> outcome) mutable {
                    const auto alive = core.lock();
                    if (!alive) return;
                    auto one = outcome ? Result<Instance>(std::move(outcome->front()))
                                       : Result<Instance>(fail(std::move(outcome).error()));
                    alive->post([alive = alive.get(), node, after, one = std::move(one)]() mutable {
                      alive->committed(node, std::move(one), after);
                    });
                  });
}

void SupervisorCore::committed(const NodePtr& node, Result<Instance> outcome, After after) {
  if (node->is_removed()) return;
  const bool changed = node->activity == Activity::committing_changed;
  node->activity = Activity::idle;
  if (outcome) {
    take(*node, *outcome);
    if (after != nullptr) (this->*after)(*node);
  } else {
    // The store has failed, or an event was sent by hand meanwhile: evaluate again at the next tick.
    log_throttled(*node, "a step of a worker was refused", outcome.error());
    node->again = runtime_.instant() + options_.tick;
  }
  if (node->is_removed()) return;
  if (outcome || changed) {
    evaluate(*node);
  } else {
    schedule(*node);
  }
}

/// Updates the copy of the durable data, and what depends on it. Commits from outside and from here may
/// arrive out of order: an older version is ignored.
void SupervisorCore::take(Node& node, const Instance& instance) {
  if (instance.version <= node.version) return;
  auto data = data_of(instance);
  if (!data) return log_throttled(node, "the stored data of a worker cannot be read", data.error());
  node.version = instance.version;
  const auto before = node.state;
  const auto desired_before = node.data->desired_version;
  node.data = *std::move(data);
  if (instance.finished) return;
  if (const auto state = state_of(*node.type, instance)) node.state = *state;
  if (node.unsaved && node.data->observed && node.data->observed->text == *node.unsaved) {
    node.unsaved.reset();
    ++stats_.observations_written;
  }
  if (node.data->desired_version != desired_before) derive(node);
  // A failed action is seen by the parent, too.
  if (node.state == before) return update_parent_view(node);
  node.entered = runtime_.instant();
  node.again.reset();
  ++node.moves;
  ++node.transitions;
  ++stats_.transitions;
  options_.log.info("a worker has moved", {{"worker", node.identity->path},
                                           {"from", node.type->states[before].name},
                                           {"to", node.type->states[node.state].name},
                                           {"reason", node.data->reason}});
  update_parent_view(node);
  for (const auto& child : std::vector<NodePtr>(node.children)) evaluate(*child);
}

/// An action has ended, durably. Called on the engine's thread.
void SupervisorCore::settled(const std::string& path, const Instance& instance) {
  post([alive = this, path, instance] {
    const auto found = alive->nodes_.find(path);
    if (found == alive->nodes_.end() || instance.finished) return;
    auto& node = *found->second;
    const auto failed = node.data->trouble ? node.data->trouble->failures : 0;
    alive->take(node, instance);
    if (node.data->trouble && node.data->trouble->failures > failed) {
      ++alive->stats_.actions_failed;
      alive->options_.log.warn("an action has failed", {{"worker", path},
                                                        {"action", node.data->trouble->action},
                                                        {"failures", node.data->trouble->failures},
                                                        {"error", node.data->trouble->error}});
    }
    if (!node.data->order) {
      node.acted = alive->runtime_.instant();
      node.barrier_at = *node.acted;
      node.barrier_ticket = alive->last_ticket_;
      node.freshness.next = *node.acted;
      node.freshness.again = node.freshness.is_collecting();
      alive->observe(node);
    }
    alive->evaluate(node);
  });
}

/// False if the action is asked to stop before the supervisor is attached. Each action waits on a gate of its
/// own, because a stop request concerns one of them.
bool SupervisorCore::wait_for_attach(const std::stop_token& stop) {
  const auto gate = std::make_shared<Gate>();
  {
    const std::lock_guard lock(tools_mutex_);
    if (attached_) return true;
    waiting_for_attach_.push_back(gate);
  }
  {
    const std::stop_callback stopped(stop, [&gate] { gate->open(); });
    runtime_.wait(*gate);
  }
  const std::lock_guard lock(tools_mutex_);
  std::erase(waiting_for_attach_, gate);
  return attached_;
}

/// Runs an action, on one of the engine's threads; again after a crash of the program.
Result<Reply> SupervisorCore::perform(const WorkContext& context, const WorkerType& type,
                                      const WorkerType::Action& action) {
  if (!wait_for_attach(context.stop))
    return fail(Code::cancelled, fmt::format("{}: stopped before it started", context.key));
  std::shared_ptr<supervise::ToolHolder> tools;
  {
    const std::lock_guard lock(tools_mutex_);
    if (const auto found = tool_holders_.find(context.key); found != tool_holders_.end())
      tools = found->second;
  }
  if (!tools) return fail(Code::stopped, fmt::format("{} \"{}\" is not supervised", type.name, context.key));
  const auto done = tools->act(action, context.number, context.attempt, context.stop);
  if (!done && context.stop.stop_requested()) return fail(done.error());
  worker_event::Ended ended{.action = action.name};
  if (!done) {
    if (done.error().code() == Code::worker_threw) ++thrown_by_actions_;
    ended.error = supervise::as_utf8(done.error().message());
    ended.cancelled = done.error().code() == Code::cancelled;
  }
  return reply(std::move(ended));
}

}  // namespace pawl
