// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A worker that does whatever a test wants of it, badly too: it hangs, throws, fails, goes in circles.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pawl/supervisor_kit.hpp"
#include "pawl/worker.hpp"
#include "tests/supervise/captured_log.hpp"

namespace pawl::test {

/// The outside of one lift, by the path of its worker.
struct Site {
  int level = 0;
  int fails = 0;              ///< so many raises fail
  Duration takes{};           ///< a raise
  bool hangs = false;         ///< a raise never ends, and does not listen
  bool throws = false;        ///< a raise
  bool mumbles = false;       ///< a raise that fails says so in bytes that are no UTF-8
  bool stuck = false;         ///< a lower has no effect
  bool does_nothing = false;  ///< a raise has no effect
  Duration look_takes{};      ///< a collection
  bool look_hangs = false;    ///< a collection never ends, and does not listen
  bool look_listens = false;  ///< a collection ends when it is asked to stop, not before
  bool look_throws = false;
  bool look_fails = false;
  // What was done.
  int raises = 0;
  int raising = 0;
  int most_raising = 0;
  int cancelled = 0;
  int lowers = 0;
  int looks = 0;
  int looking = 0;
  int most_looking = 0;
  std::optional<Duration> look_stopped_after{};
  std::vector<Instant> raised_at{};   ///< begun
  std::vector<Duration> looked_at{};  ///< begun, since the simulation began
};

struct Lab {
  std::map<std::string, Site> sites;
  int made = 0;                                            ///< tools
  std::shared_ptr<Gate> never = std::make_shared<Gate>();  ///< what hangs waits for this
};

struct LiftObserved {
  int level = 0;
};
struct LiftDesired {
  int level = 1;
  std::string mode{};
  std::uint32_t restart_after = 0;  ///< failures
  int children = 0;
  std::string child_type = "lift";
  std::string child_config{};
  std::map<std::string, std::string> child_mapping{};
  bool child_parked = false;
  std::string variable{};
};
struct LiftTools {
  Lab* lab = nullptr;
  Runtime* runtime = nullptr;
  std::string path;
  Site& site() const { return lab->sites[path]; }
};

/// What is thrown need not be a std::exception.
inline void throw_number(const LiftDesired& desired, std::string_view where) {
  if (desired.mode.starts_with("throws 42 in ") && desired.mode.ends_with(where)) throw 42;
}

struct Lift : Worker<LiftObserved, LiftDesired, LiftTools> {
  struct Down : phase::Stopped {};
  struct TryingToRise : phase::Starting {};
  struct Up : phase::Running {};
  struct Sagging : phase::Degraded {};
  struct TryingToLower : phase::Stopping {};
  using States = pawl::States<Down, TryingToRise, Up, Sagging, TryingToLower>;

  struct Raise {
    static Result<void> run(LiftTools& tools, const LiftDesired& desired, const ActionContext& context) {
      auto& site = tools.site();
      ++site.raises;
      site.raised_at.push_back(tools.runtime->instant());
      site.most_raising = std::max(site.most_raising, ++site.raising);
      const auto leave = [](Site* at) { --at->raising; };
      const std::unique_ptr<Site, decltype(leave)> inside(&site, leave);
      if (site.throws) throw std::runtime_error("the rope has snapped");
      throw_number(desired, "run");
      if (site.hangs) {
        const auto never = tools.lab->never;
        (void)tools.runtime->wait(*never);
      }
      if (site.takes > Duration::zero()) {
        Gate stopped;
        const std::stop_callback listens(context.stop, [&stopped] { stopped.open(); });
        if (tools.runtime->wait(stopped, site.takes)) {
          ++site.cancelled;
          return fail(Code::cancelled, "asked to stop");
        }
      }
      if (site.fails > 0) {
        --site.fails;
        return fail(Code::process_failed,
                    site.mumbles ? "the m\xfftor does not start" : "the motor does not start");
      }
      if (!site.does_nothing) site.level = desired.level;
      return {};
    }
  };
  struct Lower {
    static Result<void> run(LiftTools& tools, const LiftDesired&, const ActionContext&) {
      auto& site = tools.site();
      ++site.lowers;
      if (!site.stuck) site.level = 0;
      return {};
    }
  };

  static Next<Go<TryingToRise>> next(Down, const Snapshot& now) {
    if (now.desired.mode == "throws at rest") throw std::runtime_error("the lift is broken");
    throw_number(now.desired, "next");
    if (now.desired.mode == "mumbles") return Go<TryingToRise>{std::string("it is w\xff\xc3nted")};
    return Go<TryingToRise>{"it is wanted"};
  }
  static Next<Go<Up>, Do<Raise>, Restart> next(TryingToRise, const Snapshot& now) {
    if (now.desired.mode == "throws") throw std::runtime_error("the lift is broken");
    if (now.observed.level == now.desired.level)
      return Go<Up>{"it has come to level " + std::to_string(now.observed.level)};
    if (now.desired.restart_after > 0 && now.failures >= now.desired.restart_after)
      return Restart{"it has failed " + std::to_string(now.failures) + " times"};
    return Do<Raise>{"it stands at level " + std::to_string(now.observed.level)};
  }
  static Next<Stay, Go<TryingToRise>, Go<Sagging>, Remove> next(Up, const Snapshot& now) {
    if (now.desired.mode == "removes") return Remove{"it has done what it is for"};
    if (now.desired.mode == "circles") return Go<Sagging>{"round and round"};
    if (now.observed.level != now.desired.level) return Go<TryingToRise>{"it has lost its level"};
    if (!now.children.all_healthy())
      return Go<Sagging>{"only " + std::to_string(now.children.healthy()) + " of its children are healthy"};
    if (now.desired.mode == "asks again")
      return Stay{"it looks at its watch", std::chrono::milliseconds(500)};
    return Stay{"it is at level " + std::to_string(now.observed.level) + ", as it should be"};
  }
  static Next<Stay, Go<TryingToRise>, Go<Up>> next(Sagging, const Snapshot& now) {
    if (now.desired.mode == "circles") return Go<Up>{"round and round"};
    if (now.observed.level != now.desired.level) return Go<TryingToRise>{"it has lost its level"};
    if (now.children.all_healthy()) return Go<Up>{"all children are healthy again"};
    return Stay{"only " + std::to_string(now.children.healthy()) + " of its children are healthy"};
  }
  static Next<Go<Down>, Do<Lower>> next(TryingToLower, const Snapshot& now) {
    if (now.observed.level == 0) return Go<Down>{"it is down"};
    return Do<Lower>{"it is still up"};
  }
  template <class State>
  static Next<Go<TryingToLower>> stop(State, const Snapshot& now) {
    if (now.desired.mode == "throws when it stops") throw std::runtime_error("the brake is broken");
    throw_number(now.desired, "stop");
    return Go<TryingToLower>{"it is to stop"};
  }

  static Result<LiftDesired> derive(LiftDesired read) {
    if (read.mode == "throws when it derives") throw std::runtime_error("the plan is broken");
    throw_number(read, "derive");
    if (read.level < 0) return fail(Code::spec_invalid, "a level is at least 0", {{"path", "$.level"}});
    return read;
  }
  static std::vector<ChildSpec> children(const LiftDesired& desired, const UserSpec&) {
    if (desired.mode == "throws when it names its children") throw std::runtime_error("the list is broken");
    throw_number(desired, "children");
    std::vector<ChildSpec> made;
    for (int i = 1; i <= desired.children; ++i) {
      made.push_back({.name = "c" + std::to_string(i),
                      .worker_type = desired.child_type,
                      .user_spec = {.config = desired.child_config},
                      .state_mapping = desired.child_mapping,
                      .enabled = !desired.child_parked});
    }
    return made;
  }

  static Result<LiftObserved> collect(LiftTools& tools, const LiftDesired& desired,
                                      const CollectContext& context) {
    auto& site = tools.site();
    throw_number(desired, "collect");
    ++site.looks;
    site.looked_at.push_back(context.now - sim::kEpoch);
    site.most_looking = std::max(site.most_looking, ++site.looking);
    const auto leave = [](Site* at) { --at->looking; };
    const std::unique_ptr<Site, decltype(leave)> inside(&site, leave);
    const auto level = site.level;
    if (site.look_throws) throw std::runtime_error("the lamp has gone out");
    if (site.look_fails) return fail(Code::unreachable, "nobody answers");
    const auto takes = site.look_takes;
    if (site.look_hangs) {
      const auto never = tools.lab->never;
      (void)tools.runtime->wait(*never);
    }
    if (site.look_listens) {
      Gate stopped;
      const std::stop_callback listens(context.stop, [&stopped] { stopped.open(); });
      (void)tools.runtime->wait(stopped);
      site.look_stopped_after = tools.runtime->now() - context.now;
      return fail(Code::cancelled, "asked to stop");
    }
    if (takes > Duration::zero()) {
      Gate time;
      (void)tools.runtime->wait(time, takes);
    }
    return LiftObserved{level};
  }
};

/// Lifts under this name. In a file of its own: what the compiler makes of a worker takes it a while.
WorkerType lift_type(Lab& lab, Runtime& runtime, const std::string& name);

/// A program with lifts, in virtual time.
class LiftWorld {
 public:
  /// Adds types to those of the program, at each start of it.
  using More = std::function<void(WorkerTypes& types, Lab& lab, Runtime& runtime)>;
  explicit LiftWorld(SupervisorKitOptions options = {}, More more = {})
      : more_(std::move(more)), log(options.supervisor.log), kit(setup(), std::move(options)) {}
  /// What hangs is let go before the program ends.
  ~LiftWorld() { lab.never->open(); }

  SupervisorKit::Setup setup() {
    return [this](Runtime& runtime) {
      WorkerTypes types;
      types.add(lift_type(lab, runtime, "lift"));
      if (more_) more_(types, lab, runtime);
      return types;
    };
  }

  Supervisor& supervisor() { return kit.supervisor(); }
  Site& site(const std::string& path) { return lab.sites[path]; }
  /// Nothing where there is none: a worker is made a little after it was asked for.
  WorkerView show(std::string_view path) { return kit.supervisor().show(path).value_or(WorkerView{}); }
  /// Lets what hangs go, and what will hang from now on waits for another gate.
  void let_go() { std::exchange(lab.never, std::make_shared<Gate>())->open(); }
  /// Virtual time until it holds, or nothing.
  std::optional<Duration> time_until(const std::function<bool()>& holds,
                                     Duration limit = std::chrono::minutes(10)) {
    const auto began = kit.simulation().elapsed();
    if (!kit.wait_until(holds, limit)) return {};
    return kit.simulation().elapsed() - began;
  }
  bool comes_to(std::string_view path, std::string_view state) { return kit.wait_for(path, state); }

 private:
  More more_;

 public:
  Lab lab;
  CapturedLog log;
  SupervisorKit kit;
};

inline ChildSpec lift(std::string name, std::string config = "{}") {
  return {.name = std::move(name), .worker_type = "lift", .user_spec = {.config = std::move(config)}};
}

/// Without jitter_seed in it, so that times can be told.
inline SupervisorKitOptions exact() {
  SupervisorKitOptions options;
  options.supervisor.backoff.jitter = Jitter::none;
  return options;
}

}  // namespace pawl::test
