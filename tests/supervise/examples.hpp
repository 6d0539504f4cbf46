// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The example workers of the acceptance scenarios, small: what is outside is kept in `Outside`, by path.

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pawl/supervisor_kit.hpp"
#include "pawl/worker.hpp"
#include "tests/supervise/captured_log.hpp"

namespace pawl::test {

struct Outside {
  struct Link {
    bool connected = false;
    int greetings = 0;
    std::vector<std::string> attempts{};  ///< "attempt 1, remaining 2"
  };
  std::map<std::string, Link> links;
  std::optional<std::string> mood;  ///< a file that is there or not
};

struct LinkTools {
  Outside* outside = nullptr;
  Runtime* runtime = nullptr;
  std::string path;
  std::uint32_t failed = 0;  ///< in this cycle
  std::uint32_t cycle = 1;
  std::uint32_t seen_since = 0;  ///< observations since the last failure of the cycle
  Outside::Link& link() const { return outside->links[path]; }
};

struct LinkObserved {
  bool connected = false;
  bool recovering = false;
  std::uint32_t cycle = 1;
};
struct LinkDesired {
  std::string address{};
  std::string device{};
  bool should_panic = false;
  std::uint32_t delay_seconds = 0;
  std::uint32_t max_failures = 0;
  std::uint32_t failure_cycles = 1;
  std::uint32_t restart_after_failures = 0;
  std::uint32_t recovery_delay_observations = 0;
};

/// child, failing, slow and panic in one: they differ in their configuration only.
struct Link : Worker<LinkObserved, LinkDesired, LinkTools> {
  static constexpr std::string_view kType = "child";
  struct Stopped : phase::Stopped {};
  struct TryingToConnect : phase::Starting {};
  struct Connected : phase::Running {};
  struct Disconnected : phase::Starting {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToConnect, Connected, Disconnected, TryingToStop>;

  struct Connect {
    static constexpr RetryPolicy kBackoff{.retries = RetryPolicy::kUnlimited,
                                          .first = std::chrono::milliseconds(100),
                                          .factor = 1.0,
                                          .cap = std::chrono::milliseconds(100),
                                          .jitter = Jitter::none};
    static Result<void> run(LinkTools& tools, const LinkDesired& desired, const ActionContext& context) {
      if (desired.should_panic) throw std::runtime_error("panicked as configured to");
      if (desired.delay_seconds > 0) {
        Gate stopped;
        const std::stop_callback listens(context.stop, [&stopped] { stopped.open(); });
        if (tools.runtime->wait(stopped, std::chrono::seconds(desired.delay_seconds))) {
          tools.link().attempts.emplace_back("cancelled");
          return fail(Code::cancelled, "asked to stop");
        }
      }
      if (tools.failed < desired.max_failures && tools.cycle <= desired.failure_cycles) {
        ++tools.failed;
        tools.seen_since = 0;
        tools.link().attempts.push_back("attempt " + std::to_string(tools.failed) + ", remaining " +
                                        std::to_string(desired.max_failures - tools.failed));
        return fail(Code::unreachable, tools.link().attempts.back());
      }
      tools.link().connected = true;
      return {};
    }
  };
  struct Lose {
    static Result<void> run(LinkTools& tools, const LinkDesired&, const ActionContext&) {
      if (!tools.link().connected) return {};
      tools.link().connected = false;
      ++tools.cycle;
      tools.failed = 0;
      return {};
    }
  };
  struct Disconnect {
    static Result<void> run(LinkTools& tools, const LinkDesired&, const ActionContext&) {
      tools.link().connected = false;
      return {};
    }
  };

  static Next<Go<TryingToConnect>> next(Stopped, const Snapshot&) {
    return Go<TryingToConnect>{"it is wanted"};
  }
  static Next<Stay, Go<Connected>, Do<Connect>, Restart> next(TryingToConnect, const Snapshot& now) {
    if (now.observed.connected) return Go<Connected>{"it is connected"};
    if (now.desired.restart_after_failures > 0 && now.failures >= now.desired.restart_after_failures)
      return Restart{"it has failed " + std::to_string(now.failures) + " times"};
    if (now.observed.recovering) return Stay{"it recovers"};
    return Do<Connect>{"it is not connected"};
  }
  static Next<Stay, Go<Disconnected>, Do<Lose>> next(Connected, const Snapshot& now) {
    if (!now.observed.connected) return Go<Disconnected>{"the link is lost"};
    const bool again = now.observed.cycle < now.desired.failure_cycles;
    if (again && now.in_state >= std::chrono::seconds(5)) return Do<Lose>{"the next cycle begins"};
    if (again) return Stay{"it is connected for a while", std::chrono::seconds(5) - now.in_state};
    return Stay{"it is connected"};
  }
  static Next<Go<TryingToConnect>> next(Disconnected, const Snapshot&) {
    return Go<TryingToConnect>{"once more"};
  }
  static Next<Go<Stopped>, Do<Disconnect>> next(TryingToStop, const Snapshot& now) {
    if (!now.observed.connected) return Go<Stopped>{"it is not connected"};
    return Do<Disconnect>{"it is connected"};
  }
  template <class State>
  static Next<Go<TryingToStop>> stop(State, const Snapshot&) {
    return Go<TryingToStop>{"it is to stop"};
  }
  static Result<LinkObserved> collect(LinkTools& tools, const LinkDesired& desired, const CollectContext&) {
    ++tools.seen_since;
    return LinkObserved{.connected = tools.link().connected,
                        .recovering = tools.failed > 0 && tools.failed == desired.max_failures &&
                                      tools.seen_since < desired.recovery_delay_observations,
                        .cycle = tools.cycle};
  }
};

struct GroupObserved {
  bool started = false;
};
struct GroupDesired {
  std::uint32_t children_count = 0;
  std::string child_worker_type = "child";
  std::string child_config{};
  std::uint32_t wait_ms = 0;  ///< at rest
  std::uint32_t run_ms = 0;   ///< until it stops by itself; 0: never
};
struct GroupTools {
  bool started = false;
};

/// parent
struct Group : Worker<GroupObserved, GroupDesired, GroupTools> {
  static constexpr std::string_view kType = "parent";
  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct Degraded : phase::Degraded {};
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, Degraded, TryingToStop>;
  struct Start {
    static Result<void> run(GroupTools& tools, const GroupDesired&, const ActionContext&) {
      tools.started = true;
      return {};
    }
  };
  struct Stop {
    static Result<void> run(GroupTools& tools, const GroupDesired&, const ActionContext&) {
      tools.started = false;
      return {};
    }
  };
  static Duration ms(std::uint32_t count) { return std::chrono::milliseconds(count); }
  static bool is_over(const Snapshot& now) {
    return now.desired.run_ms > 0 && now.in_state >= ms(now.desired.run_ms);
  }
  static Next<Stay, Go<TryingToStart>> next(Stopped, const Snapshot& now) {
    if (now.in_state < ms(now.desired.wait_ms))
      return Stay{"it rests", ms(now.desired.wait_ms) - now.in_state};
    return Go<TryingToStart>{"it is wanted"};
  }
  static Next<Stay, Go<Running>, Do<Start>> next(TryingToStart, const Snapshot& now) {
    if (!now.observed.started) return Do<Start>{"it is not started"};
    if (now.children.all_healthy()) return Go<Running>{"all children are healthy"};
    return Stay{std::to_string(now.children.healthy()) + " children are healthy"};
  }
  static Next<Stay, Go<Degraded>, Go<TryingToStop>> next(Running, const Snapshot& now) {
    if (is_over(now)) return Go<TryingToStop>{"its time is over"};
    if (!now.children.all_healthy()) return Go<Degraded>{"a child is not healthy"};
    if (now.desired.run_ms > 0) return Stay{"it runs", ms(now.desired.run_ms) - now.in_state};
    return Stay{"it runs"};
  }
  static Next<Stay, Go<Running>> next(Degraded, const Snapshot& now) {
    if (now.children.all_healthy()) return Go<Running>{"all children are healthy"};
    return Stay{"a child is not healthy"};
  }
  static Next<Go<Stopped>, Do<Stop>> next(TryingToStop, const Snapshot& now) {
    if (!now.observed.started && now.children.all_stopped()) return Go<Stopped>{"everything rests"};
    return Do<Stop>{"something still runs"};
  }
  template <class State>
  static Next<Go<TryingToStop>> stop(State, const Snapshot&) {
    return Go<TryingToStop>{"it is to stop"};
  }
  static Result<GroupObserved> collect(GroupTools& tools, const GroupDesired&, const CollectContext&) {
    return GroupObserved{tools.started};
  }
  static std::vector<ChildSpec> children(const GroupDesired& desired, const UserSpec&) {
    std::vector<ChildSpec> made;
    for (std::uint32_t i = 1; i <= desired.children_count; ++i) {
      ChildSpec child{.name = "child-" + std::to_string(i),
                      .worker_type = desired.child_worker_type,
                      .user_spec = {.config = desired.child_config},
                      .state_mapping = {{"Stopped", "stopped"},
                                        {"TryingToStart", "run"},
                                        {"Running", "run"},
                                        {"Degraded", "run"},
                                        {"TryingToStop", "stopped"}}};
      child.user_spec.variables.user["DEVICE_ID"] = {"\"device-" + std::to_string(i) + "\""};
      made.push_back(std::move(child));
    }
    return made;
  }
};

struct HelloObserved {
  bool greeted = false;
  bool sad = false;
};
struct HelloDesired {};

struct Hello : Worker<HelloObserved, HelloDesired, LinkTools> {
  static constexpr std::string_view kType = "helloworld";
  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct Degraded : phase::Degraded {};
  using States = pawl::States<Stopped, TryingToStart, Running, Degraded>;
  struct Greet {
    static Result<void> run(LinkTools& tools, const HelloDesired&, const ActionContext&) {
      if (!tools.link().connected) ++tools.link().greetings;
      tools.link().connected = true;
      return {};
    }
  };
  static Next<Go<TryingToStart>> next(Stopped, const Snapshot&) { return Go<TryingToStart>{"it is wanted"}; }
  static Next<Go<Running>, Do<Greet>> next(TryingToStart, const Snapshot& now) {
    if (now.observed.greeted) return Go<Running>{"it has greeted"};
    return Do<Greet>{"it has not greeted"};
  }
  static Next<Stay, Go<Degraded>> next(Running, const Snapshot& now) {
    if (now.observed.sad) return Go<Degraded>{"it is sad"};
    return Stay{"it is happy"};
  }
  static Next<Stay, Go<Running>> next(Degraded, const Snapshot& now) {
    if (!now.observed.sad) return Go<Running>{"it is happy again"};
    return Stay{"it is sad"};
  }
  template <class State>
  static Next<Go<Stopped>> stop(State, const Snapshot&) {
    return Go<Stopped>{"it is to stop"};
  }
  static Result<HelloObserved> collect(LinkTools& tools, const HelloDesired&, const CollectContext&) {
    return HelloObserved{tools.link().connected, tools.outside->mood == "sad"};
  }
};

/// A program with the examples, in virtual time.
class ExampleWorld {
 public:
  explicit ExampleWorld(SupervisorKitOptions options = {})
      : log(options.supervisor.log),
        kit(
            [this](Runtime& runtime) {
              const auto tools = [this, &runtime](const WorkerIdentity& who) {
                return LinkTools{&outside, &runtime, who.path};
              };
              WorkerTypes types;
              types.add<Link>(tools).add<Hello>(tools).add<Group>();
              return types;
            },
            std::move(options)) {}

  void apply(std::vector<ChildSpec> children, Variables variables = {}) {
    kit.supervisor().apply({.children = std::move(children), .variables = std::move(variables)}).value();
  }
  WorkerView show(std::string_view path) { return kit.supervisor().show(path).value_or(WorkerView{}); }
  bool has_moved(std::string_view path, std::string_view state) {
    for (const auto& move : kit.moves(path)) {
      if (move == state) return true;
    }
    return false;
  }

  Outside outside;
  CapturedLog log;
  SupervisorKit kit;
};

inline ChildSpec example(std::string name, std::string type, std::string config = "{}") {
  return {
      .name = std::move(name), .worker_type = std::move(type), .user_spec = {.config = std::move(config)}};
}

}  // namespace pawl::test
