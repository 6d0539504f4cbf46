// SPDX-License-Identifier: Apache-2.0
#pragma once

// A second engine, as plain as can be: one map, changed entry by entry in the order of the log by nothing but
// the machines' tables. What the real engine keeps in memory and shows must be the same.

#include <map>
#include <string>
#include <string_view>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"

namespace pawl::scenarios {

class Replay {
 public:
  explicit Replay(sim::Simulation& sim) : sim_(sim) {}

  /// Replays what is new in the log, then compares every instance. Outside any task, so that nothing happens
  /// in between.
  void check(const Engine& engine);

 private:
  struct Model {
    std::string state;
    std::string data;
    bool finished = false;
    std::int64_t version = 0;
    std::int64_t generation = 0;
    std::int64_t seq = 0;
    Time at{};
  };

  void follow(const Engine& engine);
  void replay(const Engine& engine, const LogEvent& event);
  void fire(const Definition& definition, const LogEvent& event, Model& model);
  void compare(const Instance& shown);
  void require(bool holds, std::string_view what, std::string_view machine, std::string_view key);

  sim::Simulation& sim_;
  std::string cursor_ = "begin";
  std::int64_t last_seq_ = 0;
  Time last_at_{};
  bool cut_ = false;  // entries are gone that were not replayed yet
  std::map<InstanceId, Model> instances_;
};

}  // namespace pawl::scenarios
