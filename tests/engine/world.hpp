// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An engine on a simulated disk in a simulated process: the whole of it in one thread, in virtual time.
/// `restart` is a crash followed by opening again.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

namespace pawl::test {

class World {
 public:
  using MakeMachines = std::function<Machines()>;

  explicit World(MakeMachines machines, EngineOptions options = {}, std::uint64_t seed = 1)
      : simulation_({.seed = seed}),
        disk_(seed),
        machines_(std::move(machines)),
        options_(std::move(options)) {
    options_.store = "sqlite:world.db";
    options_.vfs = disk_.vfs_name();
    start();
  }

  Engine& engine() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  sim::Simulation& simulation() { return simulation_; }
  sim::Process& process() { return *process_; }
  sim::Disk& disk() { return disk_; }

  void start() {
    process_ = &simulation_.spawn("node");
    auto opened = Engine::open(*process_, machines_(), options_);
    ASSERT_TRUE(opened) << opened.error().to_string();
    engine_ = *std::move(opened);
  }

  /// The process is killed; what it had written stays.
  void kill() {
    process_->crash();
    disk_.process_kill();
    engine_.reset();
  }
  void restart() {
    kill();
    start();
  }
  void stop() { engine_.reset(); }

 private:
  sim::Simulation simulation_;
  sim::Disk disk_;
  MakeMachines machines_;
  EngineOptions options_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

}  // namespace pawl::test
