// SPDX-License-Identifier: Apache-2.0
#pragma once

// What scenarios of the engine have in common: a server on a simulated disk that crashes and is opened again,
// and clients that repeat each operation with its request id until it is answered.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/engine/open_engine.hpp"
#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"
#include "tests/sim/replay.hpp"

namespace pawl::scenarios {

class World {
 public:
  World(const World&) = delete;
  World& operator=(const World&) = delete;

 protected:
  /// One thing that a client wants.
  struct Operation {
    std::function<Transaction()> make;
    std::string key{};
    std::uint64_t sent_to = 0;       // the number of the server that has it
    bool answered = false;           // done, or refused for good
    std::optional<Error> refused{};  // why
  };

  World(sim::Simulation& sim, std::uint64_t crashes)
      : sim_(sim), disk_(sim.seed()), replay_(sim), crashes_allowed_(crashes) {}
  virtual ~World() { engine_.reset(); }

  virtual Machines machines(sim::Process& process) = 0;
  virtual EngineOptions options() = 0;
  /// The store of a server that opens.
  virtual Result<std::unique_ptr<Store>> open(Runtime& runtime, const EngineOptions& options) {
    return open_store(runtime, options);
  }
  /// A server has opened, for the first time or again.
  virtual void opened() {}
  /// Whether the server lives but must be followed by another one, because its store has failed.
  virtual bool is_useless() const { return false; }
  /// Opens the successor of a server that has crashed or is useless.
  virtual void replace() { restart(); }
  /// Whether opening may fail like this; then it is tried again.
  virtual bool may_fail_to_open(const Error&) { return false; }
  /// Lets this time pass.
  virtual void advance(Duration time) { sim_.run_for(time); }
  /// Compares what the server shows with what the log makes of it.
  virtual void check_heads() { replay_.check(*engine_); }

  void start();
  /// Crashes the server if it lives, and opens its successor on what is left.
  void restart();
  /// Runs for this long at most; a server that crashes is opened again.
  void run(Duration time);
  /// Runs until every operation is answered and `done` says so; then the heads are as the log says.
  void settle(const std::function<bool()>& done, std::string_view what);

  /// Adds an operation and sends it: queued, or by the inline path where the engine is idle.
  std::size_t add(std::string key, std::function<Transaction()> make);
  /// Sends again what the present server does not have.
  void send_open();
  bool all_answered() const;
  /// How many operations a server has not answered that was sent them.
  std::size_t unanswered_by(std::uint64_t server) const;
  std::uint64_t server() const { return server_; }

  Duration random_time(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()) + 1)};
  }
  bool chance(std::uint64_t one_in) { return sim_.draw(one_in) == 0; }
  void require_sound();

  sim::Simulation& sim_;
  sim::Disk disk_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Engine> engine_;
  std::vector<Operation> operations_;
  std::vector<std::string> points_;  // armed by the scenario; disarmed when enough has crashed

 private:
  void send(std::size_t number);
  static bool is_final(Code code);

  Replay replay_;
  std::map<std::uint64_t, std::size_t> unanswered_;
  std::uint64_t crashes_allowed_;
  std::uint64_t server_ = 0;
};

}  // namespace pawl::scenarios
