// SPDX-License-Identifier: Apache-2.0
// A parent and its children: variables that are handed down, states that are mapped, and a drain.
#include <iostream>
#include <map>

#include "pawl/supervisor_kit.hpp"

using pawl::Do, pawl::Go, pawl::Next, pawl::Stay;

// The outside: which address each pump is connected to, by the path of its worker.
struct Plant {
  std::map<std::string, std::string> connections;
  bool plugged = true;
};

struct PumpObserved {
  std::string connected_to;
};
struct PumpDesired {
  std::string address;
};
struct PumpTools {
  Plant& plant;
  std::string path;
};

struct Pump : pawl::Worker<PumpObserved, PumpDesired, PumpTools> {
  struct Stopped : pawl::phase::Stopped {};
  struct TryingToConnect : pawl::phase::Starting {};
  struct Connected : pawl::phase::Running {};
  struct TryingToStop : pawl::phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, TryingToStop>;

  struct Connect {
    static pawl::Result<void> run(Tools& tools, const Desired& desired, const pawl::ActionContext&) {
      if (!tools.plant.plugged) return pawl::fail(pawl::Code::connection_failed, "no answer");
      tools.plant.connections[tools.path] = desired.address;
      return {};
    }
  };
  struct Disconnect {
    static pawl::Result<void> run(Tools& tools, const Desired&, const pawl::ActionContext&) {
      tools.plant.connections.erase(tools.path);
      return {};
    }
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot&) {
    return Go<TryingToConnect>{"it is wanted"};
  }
  static Next<Go<Connected>, Do<Connect>> next(TryingToConnect, const Snapshot& now) {
    if (now.observed.connected_to == now.desired.address) return Go<Connected>{"to " + now.desired.address};
    return Do<Connect>{"it is not connected"};
  }
  static Next<Stay, Go<TryingToConnect>> next(Connected, const Snapshot& now) {
    if (now.observed.connected_to != now.desired.address) return Go<TryingToConnect>{"not as it should be"};
    return Stay{"to " + now.desired.address};
  }
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now) {
    if (now.observed.connected_to.empty()) return Go<Stopped>{"it is disconnected"};
    return Do<Disconnect>{"it is still connected"};
  }
  template <class State>
  static Next<Go<TryingToStop>> stop(State, const Snapshot&) {
    return Go<TryingToStop>{"it is to stop"};
  }
  static pawl::Result<Observed> collect(Tools& tools, const Desired&, const pawl::CollectContext&) {
    const auto found = tools.plant.connections.find(tools.path);
    return Observed{found == tools.plant.connections.end() ? std::string() : found->second};
  }
};

// excerpt: parent
struct StationObserved {};
struct StationDesired {
  int pumps = 2;
};

// It has nothing of its own to act on: it waits for its children, and they follow its states.
struct Station : pawl::Worker<StationObserved, StationDesired> {
  struct Stopped : pawl::phase::Stopped {};
  struct Starting : pawl::phase::Starting {};
  struct Active : pawl::phase::Running {};
  struct Limping : pawl::phase::Degraded {};
  using States = pawl::States<Stopped, Starting, Active, Limping>;

  static Next<Go<Starting>> next(Stopped, const Snapshot&) { return Go<Starting>{"it is wanted"}; }
  static Next<Stay, Go<Active>> next(Starting, const Snapshot& now) {
    if (now.children.all_healthy()) return Go<Active>{"all pumps are connected"};
    return Stay{"pumps are connecting"};
  }
  static Next<Stay, Go<Limping>> next(Active, const Snapshot& now) {
    if (!now.children.all_healthy()) return Go<Limping>{"a pump is not connected"};
    return Stay{"all pumps are connected"};
  }
  static Next<Stay, Go<Active>> next(Limping, const Snapshot& now) {
    if (now.children.all_healthy()) return Go<Active>{"all pumps are connected again"};
    return Stay{"a pump is not connected"};
  }
  template <class State>
  static Next<Go<Stopped>> stop(State, const Snapshot&) {
    return Go<Stopped>{"it is to stop"};
  }
  static pawl::Result<Observed> collect(Tools&, const Desired&, const pawl::CollectContext&) {
    return Observed{};
  }

  static std::vector<pawl::ChildSpec> children(const Desired& desired, const pawl::UserSpec&) {
    std::vector<pawl::ChildSpec> made;
    for (int i = 1; i <= desired.pumps; ++i) {
      const auto number = std::to_string(i);
      made.push_back({.name = "pump-" + number,
                      .worker_type = "pump",
                      // The network is the station's variable, the number is the pump's own.
                      .user_spec = {.config = R"({"address": "{{ .NETWORK }}.{{ .NUMBER }}"})",
                                    .variables = {.user = {{"NUMBER", {number}}}}},
                      // While the station is stopped, its pumps are, too.
                      .state_mapping = {{"stopped", "stopped"}, {"starting", "connected"}}});
    }
    return made;
  }
};
// excerpt end

static pawl::WorkerTypes types_for(Plant& plant) {
  pawl::WorkerTypes types;
  types.add<Station>();
  types.add<Pump>([&plant](const pawl::WorkerIdentity& who) { return PumpTools{plant, who.path}; });
  return types;
}

int main() {
  Plant plant;
  pawl::SupervisorKitOptions options;
  options.supervisor.trace = [](const pawl::TraceEntry& decided) {
    if (decided.type != "application" && decided.result.starts_with("go "))
      std::cout << decided.path << ": " << decided.result.substr(3) << '\n';
  };
  pawl::SupervisorKit kit([&](pawl::Runtime&) { return types_for(plant); }, options);
  auto& supervisor = kit.supervisor();
  auto become = [&](std::string_view path, std::string_view state) {
    const bool reached = kit.wait_for(path, state);
    std::cout << "-- " << path << (reached ? " is " : " is not ") << state << '\n';
  };

  // excerpt: tree
  const pawl::ChildSpec station{
      .name = "north",
      .worker_type = "station",
      .user_spec = {.config = R"({"pumps": 2})", .variables = {.user = {{"NETWORK", {R"("10.0.0")"}}}}}};
  supervisor.apply({.children = {station}}).value();
  become("north", "Active");

  plant.plugged = false;  // a plug is pulled
  plant.connections.erase("north/pump-2");
  become("north", "Limping");
  plant.plugged = true;
  become("north", "Active");

  supervisor.park("north").value();  // the pumps follow by their mapping
  become("north/pump-1", "Stopped");
  become("north/pump-2", "Stopped");
  supervisor.run("north").value();
  become("north", "Active");

  const auto drained = supervisor.drain();  // the program is about to end: children before their parents
  std::cout << "-- drained " << (drained.clean ? "cleanly" : "with force") << ", " << plant.connections.size()
            << " connections are left\n";
  // excerpt end
}

// prints: north: Starting: it is wanted
// prints: north/pump-1: TryingToConnect: it is wanted
// prints: north/pump-2: TryingToConnect: it is wanted
// prints: north/pump-1: Connected: to 10.0.0.1
// prints: north/pump-2: Connected: to 10.0.0.2
// prints: north: Active: all pumps are connected
// prints: -- north is Active
// prints: north/pump-2: TryingToConnect: not as it should be
// prints: north: Limping: a pump is not connected
// prints: -- north is Limping
// prints: north/pump-2: Connected: to 10.0.0.2
// prints: north: Active: all pumps are connected again
// prints: -- north is Active
// prints: north: Stopped: it is to stop
// prints: north/pump-1: TryingToStop: it is to stop
// prints: north/pump-2: TryingToStop: it is to stop
// prints: north/pump-1: Stopped: it is disconnected
// prints: north/pump-2: Stopped: it is disconnected
// prints: -- north/pump-1 is Stopped
// prints: -- north/pump-2 is Stopped
// prints: north: Starting: it is wanted
// prints: north/pump-1: TryingToConnect: it is wanted
// prints: north/pump-2: TryingToConnect: it is wanted
// prints: north/pump-2: Connected: to 10.0.0.2
// prints: north/pump-1: Connected: to 10.0.0.1
// prints: north: Active: all pumps are connected
// prints: -- north is Active
// prints: north/pump-1: TryingToStop: it is to stop
// prints: north/pump-2: TryingToStop: it is to stop
// prints: north/pump-2: Stopped: it is disconnected
// prints: north/pump-1: Stopped: it is disconnected
// prints: north: Stopped: it is to stop
// prints: -- drained cleanly, 0 connections are left
