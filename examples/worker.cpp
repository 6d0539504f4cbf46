// SPDX-License-Identifier: Apache-2.0
// A worker is started because it is wanted, mends what breaks, survives a crash and comes to rest.
#include <iostream>

#include "pawl/supervisor_kit.hpp"

// The outside: a process that the program starts, looks at and stops.
struct Process {
  bool running = false;
  int port = 0;
};

// excerpt: worker
struct ServiceObserved {
  bool running = false;
};
struct ServiceDesired {
  int port = 80;
};
struct ServiceTools {
  Process& process;
};

struct Service : pawl::Worker<ServiceObserved, ServiceDesired, ServiceTools> {
  // 1. States are empty types; the base says in which phase of its life the worker is there.
  struct Stopped : pawl::phase::Stopped {};
  struct TryingToStart : pawl::phase::Starting {};
  struct Running : pawl::phase::Running {};
  struct TryingToStop : pawl::phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, TryingToStop>;

  // 2. Actions are empty, too, and idempotent: one that a crash interrupts is run again.
  struct Start {
    static pawl::Result<void> run(Tools& tools, const Desired& desired, const pawl::ActionContext&) {
      tools.process = {.running = true, .port = desired.port};
      return {};
    }
  };
  struct Stop {
    static pawl::Result<void> run(Tools& tools, const Desired&, const pawl::ActionContext&) {
      tools.process.running = false;
      return {};
    }
  };

  // 3. What a state may answer is its return type; the compiler checks the machine that follows from it.
  static pawl::Next<pawl::Go<TryingToStart>> next(Stopped, const Snapshot&) {
    return pawl::Go<TryingToStart>{"it is wanted"};
  }
  static pawl::Next<pawl::Go<Running>, pawl::Do<Start>> next(TryingToStart, const Snapshot& now) {
    if (now.observed.running) return pawl::Go<Running>{"the process runs"};
    return pawl::Do<Start>{"there is no process yet"};
  }
  static pawl::Next<pawl::Stay, pawl::Go<TryingToStart>> next(Running, const Snapshot& now) {
    if (!now.observed.running) return pawl::Go<TryingToStart>{"the process is gone"};
    return pawl::Stay{"the process runs"};
  }
  static pawl::Next<pawl::Go<Stopped>, pawl::Do<Stop>> next(TryingToStop, const Snapshot& now) {
    if (!now.observed.running) return pawl::Go<Stopped>{"the process has ended"};
    return pawl::Do<Stop>{"the process still runs"};
  }
  // 4. Called instead, in every state, when the worker is to stop: no state has to check for it.
  template <class State>
  static pawl::Next<pawl::Go<TryingToStop>> stop(State, const Snapshot&) {
    return pawl::Go<TryingToStop>{"it is not wanted"};
  }

  // 5. What is really there.
  static pawl::Result<Observed> collect(Tools& tools, const Desired&, const pawl::CollectContext&) {
    return Observed{tools.process.running};
  }
};
static_assert(pawl::verified_worker<Service>);
// excerpt end

int main() {
  // excerpt: run
  Process process;
  pawl::SupervisorKitOptions options;  // a real program uses pawl/supervisor.hpp with an engine of its own
  options.supervisor.trace = [](const pawl::TraceEntry& decided) {
    if (decided.path != "web" || decided.result.starts_with("stay")) return;
    std::cout << decided.state << ": " << decided.result << '\n';
  };
  pawl::SupervisorKit kit(
      [&](pawl::Runtime&) {
        pawl::WorkerTypes types;
        types.add<Service>([&](const pawl::WorkerIdentity&) { return ServiceTools{process}; });
        return types;
      },
      options);
  auto become = [&](std::string_view state) {
    std::cout << (kit.wait_for("web", state) ? "-- it is " : "-- it is not ") << state << '\n';
  };

  kit.supervisor()
      .apply({.children = {{.name = "web",
                            .worker_type = "service",
                            .user_spec = {.config = R"({"port": 8080})"}}}})
      .value();
  become("Running");
  std::cout << "-- on port " << process.port << '\n';

  process.running = false;  // it dies, and is seen dead
  kit.wait_until([&] { return process.running; });
  become("Running");

  kit.crash();  // kill -9 of the program that supervises; the process lives on, and so does what is known of
                // it
  become("Running");

  kit.supervisor().park("web").value();
  become("Stopped");

  std::cout << "-- it was";
  for (const auto& state : kit.moves("web")) std::cout << ' ' << state;
  std::cout << '\n';
  // excerpt end
}

// prints: Stopped: go TryingToStart: it is wanted
// prints: TryingToStart: do Start: there is no process yet
// prints: TryingToStart: go Running: the process runs
// prints: -- it is Running
// prints: -- on port 8080
// prints: Running: go TryingToStart: the process is gone
// prints: TryingToStart: do Start: there is no process yet
// prints: TryingToStart: go Running: the process runs
// prints: -- it is Running
// prints: -- it is Running
// prints: Running: go TryingToStop: it is not wanted
// prints: TryingToStop: do Stop: the process still runs
// prints: TryingToStop: go Stopped: the process has ended
// prints: -- it is Stopped
// prints: -- it was TryingToStart Running TryingToStart Running TryingToStop Stopped
