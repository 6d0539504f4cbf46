// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The workers that the supervisor's own tests look at: a pump, and a line of pumps.

#include <map>
#include <string>
#include <vector>

#include "pawl/supervisor_kit.hpp"
#include "pawl/worker.hpp"

namespace pawl::test {

/// The outside: motors by the path of their workers. In a simulation only one thread moves at a time.
struct Plant {
  struct Motor {
    bool turning = false;
    int rpm = 0;
    int starts = 0;                      ///< actions that were begun
    std::vector<std::int64_t> orders{};  ///< and the numbers of their orders
    int running_starts = 0;              ///< at this moment
    int most_at_once = 0;
    int fail_starts = 0;  ///< so many starts fail
    bool stuck = false;   ///< does not stop
  };
  std::map<std::string, Motor> motors;
  std::function<void(std::string_view path)> while_starting = [](std::string_view) {};
  std::function<void(std::string_view path, const std::stop_token&)> while_collecting =
      [](std::string_view, const std::stop_token&) {};
  int made = 0;  ///< tools that were built
};

struct PumpObserved {
  bool turning = false;
  int rpm = 0;
};
struct PumpDesired {
  int rpm = 100;
  int restart_after = 0;
  bool throws = false;
};
struct PumpTools {
  Plant* plant = nullptr;
  std::string path;
  Plant::Motor& motor() const { return plant->motors[path]; }
};

struct Pump : Worker<PumpObserved, PumpDesired, PumpTools> {
  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct Slow : phase::Degraded {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, Slow, TryingToStop>;

  struct Start {
    static Result<void> run(PumpTools& tools, const PumpDesired& desired, const ActionContext& context) {
      auto& motor = tools.motor();
      ++motor.starts;
      motor.orders.push_back(context.number);
      motor.most_at_once = std::max(motor.most_at_once, ++motor.running_starts);
      tools.plant->while_starting(tools.path);
      --motor.running_starts;
      if (context.stop.stop_requested()) return fail(Code::cancelled, "asked to stop");
      if (motor.fail_starts > 0) {
        --motor.fail_starts;
        return fail(Code::process_failed, "the motor does not start");
      }
      motor.turning = true;
      motor.rpm = desired.rpm;
      return {};
    }
  };
  struct Stop {
    static Result<void> run(PumpTools& tools, const PumpDesired&, const ActionContext&) {
      if (!tools.motor().stuck) tools.motor().turning = false;
      return {};
    }
  };

  static Next<Go<TryingToStart>> next(Stopped, const Snapshot&) { return Go<TryingToStart>{"it is wanted"}; }
  static Next<Go<Running>, Do<Start>, Restart> next(TryingToStart, const Snapshot& now) {
    if (now.desired.throws) throw std::runtime_error("the pump is broken");
    if (now.observed.turning && now.observed.rpm == now.desired.rpm) return Go<Running>{"it turns"};
    if (now.desired.restart_after > 0 && static_cast<int>(now.failures) >= now.desired.restart_after)
      return Restart{"too many failures"};
    return Do<Start>{"it does not turn as it should"};
  }
  static Next<Stay, Go<TryingToStart>, Go<Slow>> next(Running, const Snapshot& now) {
    if (!now.observed.turning || now.desired.rpm != now.observed.rpm)
      return Go<TryingToStart>{"it does not turn as it should"};
    return Stay{"it turns"};
  }
  static Next<Stay, Go<Running>> next(Slow, const Snapshot& now) {
    if (now.observed.rpm >= now.desired.rpm) return Go<Running>{"it has come up"};
    return Stay{"it turns slowly"};
  }
  static Next<Go<Stopped>, Do<Stop>> next(TryingToStop, const Snapshot& now) {
    if (!now.observed.turning) return Go<Stopped>{"it stands still"};
    return Do<Stop>{"it still turns"};
  }
  template <class State>
  static Next<Go<TryingToStop>> stop(State, const Snapshot&) {
    return Go<TryingToStop>{"it is to stop"};
  }

  static Result<PumpObserved> collect(PumpTools& tools, const PumpDesired&, const CollectContext& context) {
    tools.plant->while_collecting(tools.path, context.stop);
    return PumpObserved{tools.motor().turning, tools.motor().rpm};
  }
};

struct LineObserved {};
struct LineDesired {
  int pumps = 2;
  std::string pump_type = "pump";
  std::string pump_config = "{}";
  bool mapped = false;
};

/// A parent: it runs while all its pumps are healthy.
struct Line : Worker<LineObserved, LineDesired> {
  struct Stopped : phase::Stopped {};
  struct Starting : phase::Starting {};
  struct Running : phase::Running {};
  struct Limping : phase::Degraded {};
  struct Closing : phase::Stopping {};
  using States = pawl::States<Stopped, Starting, Running, Limping, Closing>;
  struct Close {
    static Result<void> run(NoTools&, const LineDesired&, const ActionContext&) { return {}; }
  };

  static Next<Go<Starting>> next(Stopped, const Snapshot&) { return Go<Starting>{"it is wanted"}; }
  static Next<Stay, Go<Running>> next(Starting, const Snapshot& now) {
    if (now.children.all_healthy()) return Go<Running>{"all pumps run"};
    return Stay{"pumps are starting"};
  }
  static Next<Stay, Go<Limping>> next(Running, const Snapshot& now) {
    if (!now.children.all_healthy()) return Go<Limping>{"a pump is not healthy"};
    return Stay{"all pumps run"};
  }
  static Next<Stay, Go<Running>> next(Limping, const Snapshot& now) {
    if (now.children.all_healthy()) return Go<Running>{"all pumps run"};
    return Stay{"a pump is not healthy"};
  }
  static Next<Go<Stopped>, Do<Close>> next(Closing, const Snapshot& now) {
    if (now.children.all_stopped()) return Go<Stopped>{"all pumps rest"};
    return Do<Close>{"pumps still run"};
  }
  template <class State>
  static Next<Go<Closing>> stop(State, const Snapshot&) {
    return Go<Closing>{"it is to stop"};
  }
  static Result<LineObserved> collect(NoTools&, const LineDesired&, const CollectContext&) {
    return LineObserved{};
  }
  static std::vector<ChildSpec> children(const LineDesired& desired, const UserSpec&) {
    std::vector<ChildSpec> made;
    for (int i = 1; i <= desired.pumps; ++i) {
      ChildSpec pump{.name = "pump-" + std::to_string(i),
                     .worker_type = desired.pump_type,
                     .user_spec = {.config = desired.pump_config}};
      if (desired.mapped)
        pump.state_mapping = {{"stopped", "stopped"}, {"starting", "run"}, {"closing", "park"}};
      made.push_back(std::move(pump));
    }
    return made;
  }
};

inline SupervisorKit::Setup plant_setup(Plant& plant) {
  return [&plant](Runtime&) {
    WorkerTypes types;
    types.add<Pump>([&plant](const WorkerIdentity& who) {
      ++plant.made;
      return PumpTools{&plant, who.path};
    });
    types.add<Line>();
    return types;
  };
}

inline ChildSpec pump(std::string name, std::string config = "{}") {
  return {.name = std::move(name), .worker_type = "pump", .user_spec = {.config = std::move(config)}};
}
inline ChildSpec line(std::string name, std::string config = "{}") {
  return {.name = std::move(name), .worker_type = "line", .user_spec = {.config = std::move(config)}};
}

}  // namespace pawl::test
