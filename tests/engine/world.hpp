// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An engine on a simulated disk in a simulated process, in one thread and virtual time.
/// `restart` crashes the process and opens the store again.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "kernel/engine/open_engine.hpp"
#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"
#include "tests/engine/machines.hpp"

namespace pawl::test {

/// The initial state of a world, besides the engine's options.
struct Beginning {
  std::uint64_t seed = 1;
  std::function<void(sim::Disk&)> prepare{};  ///< what is done to the disk before the engine is opened
  StoreOpener opener = open_store;
};

class World {
 public:
  using MakeMachines = std::function<Machines()>;

  explicit World(MakeMachines machines, EngineOptions options = {}, Beginning beginning = {})
      : simulation_({.seed = beginning.seed}),
        disk_(beginning.seed),
        machines_(std::move(machines)),
        options_(std::move(options)),
        opener_(std::move(beginning.opener)) {
    options_.store = "sqlite:world.db";
    options_.vfs = disk_.vfs_name();
    if (beginning.prepare) beginning.prepare(disk_);
    start();
  }

  Engine& engine() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  sim::Simulation& simulation() { return simulation_; }
  sim::Process& process() { return *process_; }
  sim::Disk& disk() { return disk_; }

  void start() {
    const auto opened = try_start();
    ASSERT_TRUE(opened) << opened.error().to_string();
  }
  Result<void> try_start() {
    process_ = &simulation_.spawn("node");
    PAWL_TRY(engine_, open_engine(*process_, machines_(), options_, opener_));
    return {};
  }

  /// Kills the process; its writes stay.
  void kill() {
    process_->crash();
    disk_.process_kill();
    engine_.reset();
  }
  void restart() {
    kill();
    start();
  }
  void power_cut(sim::Unsynced unsynced) {
    process_->crash();
    disk_.power_cut(unsynced);
    engine_.reset();
  }
  void stop() { engine_.reset(); }

 private:
  sim::Simulation simulation_;
  sim::Disk disk_;
  MakeMachines machines_;
  EngineOptions options_;
  StoreOpener opener_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

inline Machines counters() {
  Machines machines;
  machines.add<counter>().add<member>();
  return machines;
}

/// 0 for success.
template <class T>
Code code_of(const Result<T>& result) {
  return result ? static_cast<Code>(0) : result.error().code();
}

}  // namespace pawl::test
