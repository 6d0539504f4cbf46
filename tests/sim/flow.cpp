// SPDX-License-Identifier: Apache-2.0
// Flows, whole: runs with delays, queues, dependencies, children and undoing, while the program crashes,
// people cancel, pause and retry, and steps fail. Every run ends; what it did outside fits how it ended.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pawl/flows.hpp"
#include "pawl/sim_disk.hpp"
#include "tests/sim/scenarios.hpp"

namespace pawl::scenarios {

using namespace std::chrono_literals;

struct Parcel {
  std::string to;
};
struct Label {
  std::vector<std::string> did;
};

namespace {

constexpr int kRuns = 8;
constexpr std::uint32_t kPlaces = 2;  // in the queue
constexpr std::uint64_t kFlowCrashes = 5;

/// What the steps have done outside, by run and step; it survives every crash.
struct Outside {
  std::map<std::string, std::vector<std::string>> done;  // by the run's ULID, in order
  std::map<std::string, int> charged;
  std::map<std::string, int> refunded;
  std::set<std::string> queued_now;  // runs of the queue of which a step runs
};

class FlowWorld {
 public:
  explicit FlowWorld(sim::Simulation& sim) : sim_(sim), disk_(sim.seed()) { start(); }
  ~FlowWorld() { stop(); }

  void run() {
    people_lane_->after(random_delay(300ms), [this] { strike(); });
    for (int i = 0; i < kRuns; ++i) people_lane_->after(random_delay(500ms), [this, i] { begin(i); });
    for (int i = 0; i < 4; ++i) people_lane_->after(random_delay(2s), [this] { meddle(); });
    while (true) {
      sim_.run_until([this] { return process_->crashed() || begun_ == kRuns; });
      if (!process_->crashed()) break;
      restart();
    }
    while (!settle()) restart();
    check();
  }

 private:
  Duration random_delay(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()))};
  }
  static std::string id_of(int number) { return fmt::format("r{}", number); }

  Outcome step(Step& step, const std::string& name, bool queued) {
    if (queued) {
      outside_.queued_now.insert(step.id());
      sim_.require(outside_.queued_now.size() <= kPlaces, "more runs of the queue run than it has places");
    }
    Gate never;
    (void)process_->wait(never, random_delay(20ms));
    outside_.queued_now.erase(step.id());
    const auto dice = sim_.draw(20);
    if (dice == 0) return Error(Code::timed_out, "chance");
    if (dice == 1) return Outcome::abort("chance");
    if (dice == 2 && name == "pack") return Outcome::rewind("charge", "chance");
    auto& done = outside_.done[step.run()];
    if (done.empty() || done.back() != name) done.push_back(name);
    return Outcome::done();
  }

  auto make_flow() {
    const auto queued = [](const Step& step) { return step.id() < "r4"; };
    return pawl::flow<Parcel, Label>("parcel")
        .start("charge",
               [this, queued](Step& present, const Parcel&, Label& label) {
                 outside_.charged[present.run()] = 1;  // idempotent
                 label.did.push_back("charge");
                 return step(present, "charge", queued(present));
               })
        .undo([this](Step& present, const Parcel&, Label&) {
          if (outside_.charged.contains(present.run())) outside_.refunded[present.run()] = 1;
          return Outcome::done();
        })
        .to("pack",
            [this, queued](Step& present, const Parcel&, Label& label) {
              label.did.push_back("pack");
              return step(present, "pack", queued(present));
            })
        .to("ship",
            [this, queued](Step& present, const Parcel&, Label& label) {
              label.did.push_back("ship");
              return step(present, "ship", queued(present));
            })
        .finally("close",
                 [this](Step& present, const Parcel&, Label&) {
                   outside_.done[present.run()].push_back("close");
                   return Outcome::done();
                 })
        .end();
  }

  void start() {
    process_ = &sim_.spawn("node");
    outside_.queued_now.clear();
    (void)process_->attempt([this] {
      flows_ = std::make_unique<Flows>(*process_);
      flows_->add(make_flow());
      Machines machines;
      flows_->add_machines(machines);
      auto opened = Engine::open(
          *process_, std::move(machines),
          {.store = "sqlite:flows.db", .vfs = disk_.vfs_name(), .workers = 4, .pools = {{"line", kPlaces}}});
      sim_.require(opened.has_value(), "the store opens");
      engine_ = *std::move(opened);
      sim_.require(flows_->attach(*engine_).has_value(), "the flows are attached");
      people_lane_ = process_->open_lane("people");
    });
  }
  void stop() {
    people_lane_.reset();
    if (flows_) flows_->detach();
    engine_.reset();
    flows_.reset();
  }
  void restart() {
    if (!process_->crashed()) process_->crash();
    disk_.process_kill();
    stop();
    start();
    if (process_->crashed()) return;
    // Nobody knows whether what was asked for was heard: it is asked again.
    for (int i = 0; i < kRuns; ++i) {
      if (!answered_.contains(i)) people_lane_->after(random_delay(100ms), [this, i] { begin(i); });
    }
    if (sim_.crashes() < kFlowCrashes) people_lane_->after(random_delay(800ms), [this] { strike(); });
  }

  void strike() {
    if (sim_.crashes() < kFlowCrashes) process_->crash();
  }

  void begin(int number) {
    RunOptions options{.id = id_of(number)};
    if (number < 4) {
      options.queue = "line";
      options.priority = static_cast<std::int32_t>(sim_.draw(3));
    }
    if (number % 3 == 0) options.delay = random_delay(200ms);
    if (number >= 6 && answered_.contains(number - 6)) {
      options.after = RunRef{"parcel", id_of(number - 6)};
      options.on = RunAfter::always;
    }
    flows_->start("parcel", R"({"to":"Oslo"})", std::move(options),
                  [this, number](const Result<pawl::Run>& run) {
                    if (!run) return;
                    if (answered_.insert(number).second) ++begun_;
                  });
  }

  /// Whatever people do, legal or not.
  void meddle() {
    const auto id = id_of(static_cast<int>(sim_.draw(kRuns)));
    engine_->submit(Transaction{}.operation({.machine = "parcel",
                                             .key = id,
                                             .event = std::array{"Cancel", "Pause", "Resume"}[sim_.draw(3)],
                                             .json = "{}"}),
                    [](const auto&) {});
  }

  /// Lets every run end; false when the program crashed meanwhile.
  bool settle() {
    if (process_->crashed()) return false;
    for (int i = 0; i < kRuns; ++i) {
      const bool alive = process_->attempt([&] {
        // Whoever was paused is let go.
        for (auto run = flows_->get("parcel", id_of(i)); run && !run->finished;
             run = flows_->wait("parcel", id_of(i), 10s)) {
          if (run->state == RunState::paused) (void)flows_->resume("parcel", id_of(i));
          if (!flows_->wait("parcel", id_of(i), 10s)) {
            const auto now = flows_->get("parcel", id_of(i));
            if (now && now->state == RunState::paused) (void)flows_->resume("parcel", id_of(i));
          }
        }
      });
      if (!alive || process_->crashed()) return false;
    }
    return true;
  }

  void check() {
    for (int i = 0; i < kRuns; ++i) {
      const auto run = flows_->get("parcel", id_of(i));
      sim_.require(run.has_value(), "a run that was acknowledged is there");
      sim_.require(run->finished, fmt::format("run {} has ended; it is {}", run->id, run->status));
      const auto& done = outside_.done[run->run];
      const auto times = [&](std::string_view name) { return std::ranges::count(done, name); };
      sim_.require(times("close") >= 1, "the finalizer has run");
      if (run->state == RunState::done) {
        std::vector<std::string> order;
        for (const auto& name : done) {
          if (std::ranges::find(order, name) == order.end()) order.push_back(name);
        }
        sim_.require(order == std::vector<std::string>{"charge", "pack", "ship", "close"},
                     "a run that is done has done every step, in order");
        sim_.require(!outside_.refunded.contains(run->run), "nothing of it was undone");
      } else {
        sim_.require(outside_.charged.contains(run->run) == outside_.refunded.contains(run->run) ||
                         run->state == RunState::handed_off,
                     "what was charged was refunded");
      }
    }
  }

  sim::Simulation& sim_;
  sim::Disk disk_;
  Outside outside_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Flows> flows_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Lane> people_lane_;
  std::set<int> answered_;
  int begun_ = 0;
};

}  // namespace

Result<void> flow(sim::Simulation& sim) {
  FlowWorld world(sim);
  world.run();
  return {};
}

}  // namespace pawl::scenarios
