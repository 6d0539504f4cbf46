// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker in memory: a copy of the durable data, and the state of this run of the program.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "supervise/node_state.hpp"
#include "supervise/wheel.hpp"

namespace pawl::supervise {

/// Whether a worker can be decided on. Only one commit at a time, because a decision needs its outcome.
enum class Activity : std::uint8_t {
  idle,
  committing,
  committing_changed,  ///< something changed meanwhile: evaluate it again even if the commit fails
  removed,             ///< posted tasks may still hold it
};

struct Node : WheelLink, NodeState, std::enable_shared_from_this<Node> {
  Node* parent = nullptr;
  std::vector<std::shared_ptr<Node>> children;  ///< in the order of `views`
  std::size_t place = 0;                        ///< its index among the parent's children
  std::size_t index = 0;                        ///< its index among all workers
  std::size_t depth = 0;

  std::int64_t version = 0;  ///< of the durable data
  std::int64_t transitions = 0;
  std::uint64_t children_version = 0;  ///< grows when the desired children may have changed
  std::shared_ptr<ToolHolder> tools;
  Activity activity = Activity::idle;
  bool wants_children = false;  ///< the desired state has some
  bool reconciled = false;      ///< the children are as desired, or commits to make them so are in progress
  bool gave_up_collecting = false;  ///< a collection of it was abandoned once
  bool slow = false;                ///< the last collection was slow

  bool is_top() const { return parent == nullptr; }
  bool is_removed() const { return activity == Activity::removed; }
  bool is_committing() const {
    return activity == Activity::committing || activity == Activity::committing_changed;
  }
};

}  // namespace pawl::supervise
