// SPDX-License-Identifier: Apache-2.0
// A tree of workers on three levels, while the program crashes, people park, run, build afresh and change the
// configuration, and actions fail. Everything becomes as it is desired; no order is lost, none runs beside
// itself.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pawl/sim_disk.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/supervise/lab.hpp"

namespace pawl::scenarios {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kTreeCrashes = 5;
constexpr int kChanges = 12;

/// What the configuration says: the top, its lines, their pumps.
struct Plan {
  int lines = 1;
  int pumps = 1;
  int level = 1;
  bool mapped = false;

  std::string mapping() const {
    if (!mapped) return "{}";
    return R"({"Down": "park", "TryingToLower": "park",
               "TryingToRise": "run", "Up": "run", "Sagging": "run"})";
  }
  std::string config() const {
    const auto pump = fmt::format(R"({{"level": {}}})", level);
    const auto line =
        fmt::format(R"({{"level": {}, "children": {}, "child_config": {}, "child_mapping": {}}})", level,
                    pumps, encode(pump).value(), mapping());
    return fmt::format(R"({{"level": {}, "children": {}, "child_config": {}, "child_mapping": {}}})", level,
                       lines, encode(line).value(), mapping());
  }
  /// Parents before children.
  std::vector<std::string> paths() const {
    std::vector<std::string> made{"top"};
    for (int line = 1; line <= lines; ++line) {
      made.push_back(fmt::format("top/c{}", line));
      for (int pump = 1; pump <= pumps; ++pump) made.push_back(fmt::format("top/c{}/c{}", line, pump));
    }
    return made;
  }
};

/// What a worker may have been asked for, as far as the one who asks can know.
struct Asked {
  std::int64_t generation = 0;
  std::set<std::optional<Intent>> possible;
};

class TreeWorld {
 public:
  explicit TreeWorld(sim::Simulation& sim) : sim_(sim), disk_(sim.seed()) {}
  ~TreeWorld() { stop(); }

  void run() {
    survive([] {});
    for (int change = 0; change < kChanges; ++change) {
      disturb();
      const auto dice = sim_.draw(6);
      const auto path = some_path();
      if (dice < 2) {
        replan();
      } else if (dice == 2) {
        ask(path, Intent::park);
      } else if (dice < 5) {
        ask(path, Intent::run);
      } else {
        survive([&] { (void)supervisor_->restart(path, "chance"); });
      }
      survive([&] { sim_.run_for(random_delay(4s)); });
    }
    for (auto& [_, site] : lab_.sites) site.fails = 0;
    survive([this] { settle(); });
    check();
  }

 private:
  Duration random_delay(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()))};
  }

  std::string some_path() {
    const auto paths = Plan{.lines = 2, .pumps = 2}.paths();
    return paths[sim_.draw(paths.size())];
  }

  void disturb() {
    auto& site = lab_.sites[some_path()];
    site.takes = random_delay(1s);
    switch (sim_.draw(3)) {
      case 0:
        site.fails = static_cast<int>(sim_.draw(3));
        break;
      case 1:
        site.level = 0;
        break;
      default:
        site.look_takes = random_delay(500ms);
    }
  }

  /// Does it until the program has not crashed meanwhile.
  void survive(const std::function<void()>& work) {
    while (true) {
      while (process_ == nullptr || process_->crashed()) start();
      if (process_->attempt(work) && !process_->crashed()) return;
    }
  }

  void start() {
    disk_.process_kill();
    stop();
    process_ = &sim_.spawn("node");
    (void)process_->attempt([this] {
      WorkerTypes types;
      types.add<test::Lift>([this, runtime = process_](const WorkerIdentity& who) {
        return test::LiftTools{&lab_, runtime, who.path};
      });
      SupervisorOptions options{.actions = 3};
      options.backoff.first = 100ms;
      options.backoff.cap = 2s;
      supervisor_ = std::make_unique<Supervisor>(*process_, std::move(types), options);
      Machines machines;
      supervisor_->add_machines(machines);
      auto opened = Engine::open(*process_, std::move(machines),
                                 {.store = "sqlite:tree.db",
                                  .vfs = disk_.vfs_name(),
                                  .work_threads = 4,
                                  .pools = {{std::string(Supervisor::kPool), 3}}});
      sim_.require(opened.has_value(), "the store opens");
      engine_ = *std::move(opened);
      sim_.require(supervisor_->attach(*engine_).has_value(), "the supervisor is attached");
      check_what_survives();
      strikes_ = process_->open_lane("strikes");
      if (sim_.crashes() < kTreeCrashes) strikes_->after(random_delay(15s), [this] { process_->crash(); });
    });
  }
  void stop() {
    strikes_.reset();
    if (supervisor_) supervisor_->detach();
    engine_.reset();
    supervisor_.reset();
  }

  void replan() {
    plan_ = {.lines = static_cast<int>(1 + sim_.draw(2)),
             .pumps = static_cast<int>(sim_.draw(3)),
             .level = static_cast<int>(1 + sim_.draw(3)),
             .mapped = sim_.draw(2) == 0};
    survive([this] {
      const auto version = supervisor_->apply({.children = {test::lift("top", plan_.config())}});
      if (version) version_ = std::max(version_, *version);
    });
    has_plan_ = true;
  }

  void ask(const std::string& path, Intent intent) {
    survive([&] {
      asked_.erase(path);
      const auto before = engine_->read("worker_lift", path);
      if (before && !before->finished) {
        // Until it is answered both are possible: a crash may come before the commit, or between the commit
        // and the answer.
        asked_[path] = {before->generation, {stored(*before).asked, intent}};
      }
      const auto done = intent == Intent::park ? supervisor_->park(path) : supervisor_->run(path);
      const auto asked = asked_.find(path);
      if (asked == asked_.end()) return;
      asked->second.possible = {done ? intent : stored(*before).asked};
    });
  }

  WorkerData stored(const Instance& instance) { return decode<WorkerData>(instance.data).value(); }

  /// What was acknowledged is there after a crash.
  void check_what_survives() {
    if (process_->crashed()) return;
    const auto applied = supervisor_->applied();
    if (!applied) return;
    sim_.require(applied->second >= version_, "a version that was acknowledged is lost");
    for (auto& [path, asked] : asked_) {
      const auto found = engine_->read("worker_lift", path);
      sim_.require(found.has_value(), "a worker that was asked is there, or its tombstone");
      if (found->generation != asked.generation || found->finished) continue;
      const auto now = stored(*found).asked;
      sim_.require(asked.possible.contains(now), fmt::format("what {} was asked for is lost", path));
      asked.possible = {now};  // what was found after a crash is durable
    }
    for (const auto& view : supervisor_->tree()) {
      const auto found = engine_->read("worker_lift", view.identity.path);
      sim_.require(found.has_value(), "who is supervised is stored");
      const auto [place, first] = born_.emplace(fmt::format("{} {}", view.identity.path, found->generation),
                                                view.identity.created_at);
      sim_.require(first || place->second == view.identity.created_at,
                   fmt::format("the identity of {} has changed: made at {}, now {}", view.identity.path,
                               to_string(place->second), to_string(view.identity.created_at)));
    }
  }

  /// What it should come to.
  std::map<std::string, std::string> expected() {
    std::map<std::string, bool> runs;
    std::map<std::string, std::string> states;
    const auto paths = plan_.paths();
    for (const auto& path : paths) {
      const auto found = engine_->read("worker_lift", path);
      const bool parked = found && !found->finished && stored(*found).asked == Intent::park;
      const auto slash = path.rfind('/');
      const bool follows = plan_.mapped && slash != std::string::npos;
      runs[path] = !parked && (!follows || runs[path.substr(0, slash)]);
    }
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
      const bool healthy = std::ranges::all_of(states, [&](const auto& child) {
        const auto slash = child.first.rfind('/');
        return child.first.substr(0, slash) != *path || child.second == "Up";
      });
      states[*path] = !runs[*path] ? "Down" : healthy ? "Up" : "Sagging";
    }
    return states;
  }

  std::map<std::string, std::string> present() {
    std::map<std::string, std::string> states;
    for (const auto& view : supervisor_->tree()) {
      const bool first = states.emplace(view.identity.path, view.state).second;
      sim_.require(first, fmt::format("{} is there twice", view.identity.path));
      if (!view.action.empty()) states[view.identity.path] += " with " + view.action;
      if (view.restarting) states[view.identity.path] += ", restarting";
    }
    return states;
  }

  static std::string to_text(const std::map<std::string, std::string>& states) {
    std::string text;
    for (const auto& [path, state] : states) text += fmt::format(" {}={}", path, state);
    return text;
  }

  void settle() {
    if (!has_plan_) plan_ = {.lines = 0, .pumps = 0};
    sim_.run_for(5s);  // what was disturbed last is seen
    for (int second = 0; second < 300; ++second) {
      sim_.run_for(1s);
      if (process_->crashed()) return;
      if (has_plan_ ? present() == expected() : present().empty()) return;
    }
    sim_.require(false, fmt::format("it did not become as desired:{}; but should be:{}", to_text(present()),
                                    to_text(has_plan_ ? expected() : std::map<std::string, std::string>{})));
  }

  void check() {
    for (const auto& [path, site] : lab_.sites) {
      sim_.require(site.most_raising <= 1, fmt::format("an action of {} ran beside itself", path));
      const auto state = supervisor_->show(path);
      const bool up = state && state->phase != Phase::stopped;
      sim_.require(site.level == (up ? plan_.level : 0), fmt::format("{} is at level {}", path, site.level));
      check_orders(path);
    }
    const auto stored = engine_->list({.machine = "worker_lift", .finished = false, .limit = 1000}).value();
    sim_.require(stored.instances.size() == supervisor_->tree().size(),
                 "the store holds a worker more or less");
    sim_.require(supervisor_->applied().value().second == version_ || !has_plan_,
                 "the version is the last one");
  }

  /// Each order has one end, before the next order.
  void check_orders(const std::string& path) {
    const auto history = engine_->history("worker_lift", path, 0, 100'000);
    if (!history) return;
    bool open = false;
    for (auto event = history->events.rbegin(); event != history->events.rend(); ++event) {
      if (event->event == "Ordered")
        sim_.require(!std::exchange(open, true), fmt::format("{} has two orders at once", path));
      if (event->event == "Ended")
        sim_.require(std::exchange(open, false), fmt::format("{} has an end without an order", path));
      if (event->event == "Restarted" || event->event == "Removed") open = false;
    }
    sim_.require(!open, fmt::format("an order of {} was lost", path));
  }

  sim::Simulation& sim_;
  sim::Disk disk_;
  test::Lab lab_;
  Plan plan_;
  bool has_plan_ = false;
  std::int64_t version_ = 0;
  std::map<std::string, Asked> asked_;
  std::map<std::string, Time> born_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Lane> strikes_;
};

}  // namespace

Result<void> supervise(sim::Simulation& sim) {
  TreeWorld world(sim);
  world.run();
  return {};
}

}  // namespace pawl::scenarios
