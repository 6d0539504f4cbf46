// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads and changes one partition in isolation.
///
///     engine->atomically("group-7", [&](pawl::Atomic& group) -> pawl::Result<void> {
///       for (const auto& old : group.all<member>(Role::primary)) group.send<member>(old.key, Demote{});
///       group.send<member>(winner, Promote{});
///       return {};
///     });
///
/// Reads see durable states; sends are collected and committed together after the function returns. If the
/// partition has changed in the meantime, the function runs again, so it must have no side effects.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/instance.hpp"
#include "pawl/transaction.hpp"

namespace pawl {

/// Valid for one run of the function, on its thread.
class Atomic {
 public:
  template <const auto& M>
  Result<Snapshot<M>> get(std::string_view key) const {
    return to_snapshot<M>(read(M.traits.name, key));
  }

  /// The partition's instances of a machine that are in `state`, in the order of their creation.
  template <const auto& M>
  std::vector<Snapshot<M>> all(StateOf<M> state) const {
    std::vector<Snapshot<M>> found;
    for (const auto& key : keys(M.traits.name)) {
      if (auto one = get<M>(key); one && one->state == state) found.push_back(*std::move(one));
    }
    return found;
  }

  template <const auto& M>
  void create(std::string key, const DataOf<M>& data = {}) {
    std::move(transaction_).template create<M>(std::move(key), data, {.partition = partition_});
  }
  template <const auto& M, class E>
  void send(std::string key, const E& event) {
    std::move(transaction_).template send<M>(std::move(key), event);
  }
  void sql(Sql statement) { std::move(transaction_).sql(std::move(statement)); }

 private:
  friend class Engine;
  Atomic(EngineCore& core, std::string partition) : core_(core), partition_(std::move(partition)) {}

  Result<Instance> read(std::string_view machine, std::string_view key) const;
  std::vector<std::string> keys(std::string_view machine) const;

  EngineCore& core_;
  std::string partition_;
  Transaction transaction_;
};

}  // namespace pawl
