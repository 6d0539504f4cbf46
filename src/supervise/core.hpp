// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The supervisor. Its functions run on its lane unless stated otherwise.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/engine.hpp"
#include "pawl/names.hpp"
#include "pawl/supervisor.hpp"
#include "supervise/application.hpp"
#include "supervise/collectors.hpp"
#include "supervise/decision.hpp"
#include "supervise/freshness.hpp"
#include "supervise/node.hpp"
#include "supervise/wheel.hpp"

namespace pawl {

class SupervisorCore : public std::enable_shared_from_this<SupervisorCore> {
 public:
  using Node = supervise::Node;
  using NodePtr = std::shared_ptr<Node>;

  SupervisorCore(Runtime& runtime, WorkerTypes types, SupervisorOptions options);

  // From any thread.
  void add_machines(Machines& machines);
  Result<AttachReport> attach(Engine& engine);
  void detach();
  Result<std::int64_t> apply(const TreeSpec& tree, std::optional<std::int64_t> expected);
  Result<std::pair<TreeSpec, std::int64_t>> applied();
  Result<std::int64_t> change_top(const std::function<Result<void>(TreeSpec&)>& change);
  Result<void> check(const TreeSpec& tree) const;
  Result<void> ask(std::string_view path, std::optional<Intent> intent);
  Result<void> restart(std::string_view path, std::string reason);
  Result<WorkerView> show(std::string_view path);
  std::vector<WorkerView> tree();
  std::vector<std::string> paths();
  std::map<std::string, std::map<Phase, std::size_t>> counts();
  std::map<std::string, std::map<Health, std::size_t>> health_counts();
  SupervisorStats stats();
  DrainReport drain(Duration base);
  void force();
  const WorkerTypes& types() const { return types_; }
  const SupervisorOptions& options() const { return options_; }

 private:
  using After = void (SupervisorCore::*)(Node&);

  void post(Task task);
  /// Runs `work` on the lane and waits for it. Error: `stopped`.
  Result<void> on_lane(std::move_only_function<void()> work);
  Result<void> reread_top();
  /// Sends an event to a worker and waits until it is durable.
  Result<Instance> send_and_wait(std::string_view path, std::string_view event, Result<std::string> payload);

  // Nodes (core.cpp).
  Result<void> load(AttachReport& report);
  Result<void> find_unknown(AttachReport& report) const;
  static Result<std::shared_ptr<const WorkerData>> data_of(const Instance& instance);
  /// None if the type has no such state, because another release of the program stored it.
  static std::optional<std::size_t> state_of(const WorkerType& type, const Instance& instance);
  NodePtr make_node(const std::shared_ptr<const WorkerType>& type, const Instance& instance,
                    std::shared_ptr<const WorkerData> data, Node* parent);
  void link_all(std::vector<NodePtr> loaded, AttachReport& report);
  void adopt(const NodePtr& node, Node& parent);
  void forget(Node& node);
  Result<void> make_top();
  void reset_node(Node& node);
  void publish_tools(const Node& node);
  void retire_tools(Node& node);
  void give_up_collecting(Node& node);
  void remember_hung_action(const Node& node);

  // Commits (commit.cpp).
  /// Sends an event to a worker and evaluates the worker when it is durable.
  void commit(Node& node, const supervise::Event& event);
  void committed(const NodePtr& node, Result<Instance> outcome, After after);
  void take(Node& node, const Instance& instance);
  void settled(const std::string& path, const Instance& instance);
  bool wait_for_attach(const std::stop_token& stop);
  Result<Reply> perform(const WorkContext& context, const WorkerType& type, const WorkerType::Action& action);

  // Deciding (decide.cpp).
  void evaluate(Node& node);
  /// Without `drain_until`, which only `evaluate` needs.
  supervise::DecisionContext context() const;
  void execute(Node& node, std::vector<supervise::Action> actions);
  void restart_node(Node& node);
  void record_exception(Node& node, const Error& error);
  void set_reason(Node& node, Reason reason);
  void set_health(Node& node, Health health);

  // Time (tick.cpp).
  void tick();
  void arm();
  void service(Node& node);
  void schedule(Node& node);
  std::int64_t tick_of(Instant at) const;

  // Observing (observe.cpp).
  void observe(Node& node);
  void update_queued(Node& node);
  void take_observations();
  void collection_ended(supervise::CollectionResult result);
  void stop_collection(Node& node);
  void restart_collecting(Node& node);
  void restart_unobserved(Node& node);

  // Desired and children (tree.cpp).
  void derive(Node& node);
  static InternalVariables internal_of(const Node& node);
  Result<void> check_free_of_internal(const Node& node, const std::vector<ChildSpec>& children) const;
  Result<std::shared_ptr<const void>> derive_desired(const Node& node,
                                                     const InternalVariables& internal) const;
  Result<void> check_children(const WorkerType& parent, std::string_view path,
                              const std::vector<ChildSpec>& children) const;
  Result<void> check_mapping(const WorkerType& parent, const WorkerType& child, const ChildSpec& spec) const;
  void reconcile(Node& node);
  bool has_to_reconcile(const Node& node) const;
  void create_child(Node& parent, const ChildSpec& spec);
  void child_created(Node& parent, const ChildSpec& spec, Result<Instance> outcome);
  void child_not_created(Node& parent, const std::string& name, const Error& error);
  Result<Instance> find_created_child(const Node& parent, const ChildSpec& spec) const;
  void update_parent_view(Node& node);

  static Health health_of(const Node& node);
  WorkerView view(const Node& node) const;
  static std::vector<const Node*> children_by_path(const Node& node);
  /// All workers but the top, parents before their children.
  std::vector<const Node*> in_order() const;
  void continue_drain();
  std::size_t height(const Node& node) const;

  void log_throttled(Node& node, std::string_view what, const Error& error);

  Runtime& runtime_;
  const WorkerTypes types_;
  const SupervisorOptions options_;
  Engine* engine_ = nullptr;  // on the lane, and by handlers once it is attached

  std::unordered_map<std::string_view, NodePtr> nodes_;  // keys point into the identities
  std::vector<Node*> all_;
  NodePtr top_;
  /// Removed workers with an action that has not returned, by path.
  std::unordered_map<std::string, std::shared_ptr<const supervise::WorkerShared>> hung_;
  supervise::Wheel wheel_;
  Instant start_{};
  std::optional<TimerId> timer_;
  std::int64_t timer_tick_ = 0;
  std::map<std::string, Instant, std::less<>> logged_;
  SupervisorStats stats_;
  std::uint64_t last_ticket_ = 0;  // of a collection
  std::atomic<std::uint64_t> thrown_by_actions_ = 0;

  struct Drain {
    Instant began{};
    Duration base{};
    std::function<void(DrainReport)> done;
  };
  std::optional<Drain> drain_;

  std::mutex tools_mutex_;
  std::unordered_map<std::string_view, std::shared_ptr<supervise::ToolHolder>> tool_holders_;
  bool attached_ = false;                                  // under tools_mutex_
  std::vector<std::shared_ptr<Gate>> waiting_for_attach_;  // one of each action, under tools_mutex_

  std::mutex lane_mutex_;  // held to post, and to forbid posting
  std::atomic<bool> stopped_{true};
  std::unique_ptr<supervise::Collectors> collectors_;
  std::unique_ptr<supervise::ToolDestroyer> tool_destroyer_;
  // Tasks use the raw pointer, because resetting the owner clears it before the last task has ended.
  Lane* lane_ = nullptr;
  std::unique_ptr<Lane> lane_owner_;
};

}  // namespace pawl
