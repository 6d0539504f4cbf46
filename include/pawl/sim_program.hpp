// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A program in a simulation of its own, on a simulated disk, which is restarted after each crash: the base
/// of the test kits.
///
///     class Kit final : public pawl::sim::Program {
///      public:
///       Kit() : Program({.seed = 7}) { begin(); }
///       ~Kit() override { close(); }
///
///      private:
///       pawl::Result<void> open(pawl::sim::Process& process) override;  // on `disk()`, at each start
///       void close() override;                                          // also after a crash
///     };
///     kit.crash();                                                      // kill -9; and it starts again

#include <functional>

#include "pawl/error.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"
#include "pawl/time.hpp"

namespace pawl::sim {

/// Externally synchronised.
class Program {
 public:
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  Simulation& simulation() { return simulation_; }
  Process& process() { return *process_; }

  /// Advances time.
  void advance(Duration time) { simulation_.run_for(time); }
  /// Kills the program as by kill -9 and starts it again.
  void crash();
  /// Stops the program in order and starts it again.
  void restart();

 protected:
  explicit Program(const Options& options) : simulation_(options), disk_(options.seed) {}
  /// A kit closes what it has opened in its own destructor.

  virtual Result<void> open(Process& process) = 0;
  virtual void close() = 0;

  /// Starts the program for the first time; called by the constructor of the kit.
  void begin();
  Disk& disk() { return disk_; }
  /// Runs `work`; after a crash of the program, starts it again and repeats `work` from the start.
  Result<void> survive(const std::function<Result<void>()>& work);

 private:
  Result<void> start();

  Simulation simulation_;
  Disk disk_;
  Process* process_ = nullptr;
};

}  // namespace pawl::sim
