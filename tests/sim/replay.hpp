// SPDX-License-Identifier: Apache-2.0
#pragma once

// A second engine, as plain as can be: one map, changed entry by entry in the order of the log by nothing but
// the machines' tables. What the real engine keeps in memory and shows must be the same. Where the log is cut
// before it was replayed, the model goes on from what the heads carry.

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
    bool known = true;  // false: entries of it may have been cut away that were not replayed
  };

  void follow(const Engine& engine);
  void forget_what_was_cut(const Error& expired);
  void replay(const Engine& engine, const LogEvent& event);
  void fire(const Definition& definition, const LogEvent& event, Model& model);
  void compare(const Instance& shown);
  /// Takes what is shown as the new base of an instance, if its newest entry was cut away; else false.
  bool adopt(const Instance& shown);
  void require(bool holds, std::string_view what, std::string_view machine, std::string_view key);

  sim::Simulation& sim_;
  std::string cursor_ = "begin";
  std::int64_t last_seq_ = 0;
  Time last_at_{};
  std::int64_t gap_ = 0;  // entries up to this one were cut away before they were replayed; 0: none were
  std::map<InstanceId, Model> instances_;
};

}  // namespace pawl::scenarios
