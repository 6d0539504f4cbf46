// SPDX-License-Identifier: Apache-2.0
// Flows, whole: runs with delays, queues, dependencies, children and undoing, while the program crashes,
// people cancel, pause, start anew and retry, and steps fail. Every run ends; what it did outside fits how it
// ended, no dependent begins before the run it comes after has ended, and no parent before its children have.
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
constexpr int kFirstDependent = 5;  // these and later ones may come after an earlier one
constexpr int kOrders = 2;          // with children
constexpr int kChildren = 2;
constexpr std::uint32_t kPlaces = 2;  // in the queue
constexpr std::uint64_t kFlowCrashes = 5;

/// What the steps have done outside, by run and step; it survives every crash.
struct Outside {
  std::map<std::string, std::vector<std::string>> done;  // by the run's ULID, in order
  std::map<std::string, int> charged;
  std::map<std::string, int> refunded;
  std::set<std::string> queued_now;  // runs of the queue of which a step runs
  std::set<std::string> closed;      // ids of which a run has reached its finalizer
};

class FlowWorld {
 public:
  explicit FlowWorld(sim::Simulation& sim) : sim_(sim), disk_(sim.seed()) { start(); }
  ~FlowWorld() { stop(); }

  void run() {
    people_lane_->after(random_delay(300ms), [this] { strike(); });
    for (int i = 0; i < kRuns; ++i) people_lane_->after(random_delay(500ms), [this, i] { begin(i); });
    for (int i = 0; i < kOrders; ++i) people_lane_->after(random_delay(500ms), [this, i] { order(i); });
    for (int i = 0; i < 8; ++i) people_lane_->after(random_delay(2s), [this] { meddle(); });
    while (true) {
      sim_.run_until([this] { return process_->crashed() || begun_ == kRuns + kOrders; });
      if (!process_->crashed()) break;
      restart();
    }
    while (!settle()) restart();
    check_dependents();
    check();
    retry_some();
    while (!settle()) restart();
    check();
  }

 private:
  Duration random_delay(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()))};
  }
  static std::string id_of(int number) { return fmt::format("r{}", number); }
  static std::string child_of(std::string_view order, int number) {
    return fmt::format("{}-{}", order, number);
  }
  /// Everything that there may be, with its flow.
  static std::vector<RunRef> all_runs() {
    std::vector<RunRef> all;
    for (int i = 0; i < kRuns; ++i) all.push_back({"parcel", id_of(i)});
    for (int i = 0; i < kOrders; ++i) {
      const auto order = fmt::format("o{}", i);
      all.push_back({"order", order});
      for (int k = 0; k < kChildren; ++k) all.push_back({"parcel", child_of(order, k)});
    }
    return all;
  }
  RunRef any_run() {
    const auto all = all_runs();
    return all[sim_.draw(all.size())];
  }

  /// A run that comes after another one has no business before that has ended.
  void check_turn(Step& step) {
    const auto self = step.get(step.flow(), step.id());
    if (!self || !self->plan || !self->plan->after) return;
    sim_.require(self->plan->after->ended.has_value(), "a dependent begins when the other has ended");
    sim_.require(
        outside_.closed.contains(self->plan->after->run.id),
        fmt::format("{} begins after {}, which has not ended", step.id(), self->plan->after->run.id));
  }

  Outcome step(Step& step, const std::string& name, bool queued) {
    check_turn(step);
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
    auto& done = outside_.done[step.run_ulid()];
    if (done.empty() || done.back() != name) done.push_back(name);
    return Outcome::done();
  }

  auto make_flow() {
    const auto queued = [](const Step& step) { return step.id().starts_with('r') && step.id() < "r4"; };
    return pawl::flow<Parcel, Label>("parcel")
        .start("charge",
               [this, queued](Step& present, const Parcel&, Label& label) {
                 outside_.charged[present.run_ulid()] = 1;  // idempotent
                 label.did.push_back("charge");
                 return step(present, "charge", queued(present));
               })
        .undo([this](Step& present, const Parcel&, Label&) {
          if (outside_.charged.contains(present.run_ulid())) outside_.refunded[present.run_ulid()] = 1;
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
        .finally("close", [this](Step& present, const Parcel&, Label&) { return close(present); })
        .end();
  }
  Outcome close(Step& present) {
    outside_.done[present.run_ulid()].push_back("close");
    outside_.closed.insert(present.id());
    return Outcome::done();
  }

  auto make_order() {
    return pawl::flow<Parcel, Label>("order")
        .start("split",
               [this](Step& present, const Parcel& parcel, Label&) -> Outcome {
                 for (int k = 0; k < kChildren; ++k) {
                   RunOptions options{.id = child_of(present.id(), k)};
                   if (sim_.draw(2) == 0) options.delay = random_delay(50ms);
                   PAWL_CHECK(present.start_child("parcel", parcel, std::move(options)));
                 }
                 auto outcome = step(present, "split", false);
                 return outcome.kind() == Outcome::Kind::done ? Outcome::join() : outcome;
               })
        .to("bill",
            [this](Step& present, const Parcel&, Label&) -> Outcome {
              for (int k = 0; k < kChildren; ++k) {
                PAWL_TRY(const auto child, present.get("parcel", child_of(present.id(), k)));
                sim_.require(child.finished,
                             fmt::format("{} is {} when its parent goes on", child.id, child.status));
              }
              if (sim_.draw(10) == 0) return Outcome::rewind("split", "chance");
              return step(present, "bill", false);
            })
        .finally("close", [this](Step& present, const Parcel&, Label&) { return close(present); })
        .end();
  }

  void start() {
    process_ = &sim_.spawn("node");
    outside_.queued_now.clear();
    (void)process_->attempt([this] {
      flows_ = std::make_unique<Flows>(*process_);
      flows_->add(make_flow());
      flows_->add(make_order());
      Machines machines;
      flows_->add_machines(machines);
      auto opened = Engine::open(*process_, std::move(machines),
                                 {.store = "sqlite:flows.db",
                                  .vfs = disk_.vfs_name(),
                                  .work_threads = 4,
                                  .pools = {{"line", kPlaces}}});
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
      if (!answered_.contains(id_of(i))) people_lane_->after(random_delay(100ms), [this, i] { begin(i); });
    }
    for (int i = 0; i < kOrders; ++i) {
      if (!answered_.contains(fmt::format("o{}", i)))
        people_lane_->after(random_delay(100ms), [this, i] { order(i); });
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
    const auto upstream = static_cast<int>(sim_.draw(kFirstDependent));
    if (number >= kFirstDependent && answered_.contains(id_of(upstream))) {
      options.after = RunRef{"parcel", id_of(upstream)};
      options.on = std::array{RunAfter::success, RunAfter::always, RunAfter::failure}[sim_.draw(3)];
    }
    start_run("parcel", std::move(options));
  }
  void order(int number) { start_run("order", {.id = fmt::format("o{}", number)}); }

  void start_run(std::string_view flow, RunOptions options) {
    auto id = options.id;
    flows_->start(flow, R"({"to":"Oslo"})", std::move(options),
                  [this, id = std::move(id)](const Result<pawl::Run>& run) {
                    if (run && answered_.insert(id).second) ++begun_;
                  });
  }

  /// Whatever people do, legal or not.
  void meddle() {
    if (sim_.draw(4) == 0) return begin(static_cast<int>(sim_.draw(kRuns)));  // where it has ended: anew
    const auto run = any_run();
    const auto first = run.flow == "order" ? "split" : "charge";
    const auto [event, payload] = std::array<std::pair<std::string, std::string>, 4>{
        {{"Cancel", R"({"reason":"chance"})"},
         {"Pause", "{}"},
         {"Resume", "{}"},
         {"Retry", fmt::format(R"({{"step":"{}"}})", first)}}}[sim_.draw(4)];
    engine_->submit(
        Transaction{}.operation({.machine = run.flow, .key = run.id, .event = event, .json = payload}),
        [](const auto&) {});
  }

  /// Some of those that have ended, from their first step.
  void retry_some() {
    for (const auto& run : all_runs()) {
      // A parent counts on nobody else starting its children.
      if (process_->crashed() || run.id.contains('-') || sim_.draw(4) != 0) continue;
      (void)process_->attempt(
          [&] { (void)flows_->retry(run.flow, run.id, run.flow == "order" ? "split" : "charge"); });
    }
  }

  /// Lets every run end; false when the program crashed meanwhile.
  bool settle() {
    constexpr int kLooks = 50;
    for (int look = 0; look < kLooks && !process_->crashed(); ++look) {
      bool ended = true;
      const bool alive = process_->attempt([&] {
        for (const auto& [flow, id] : all_runs()) {
          const auto run = flows_->get(flow, id);
          if (!run || run->finished) continue;
          ended = false;
          // Whoever was paused is let go.
          if (run->state == RunState::paused) (void)flows_->resume(flow, id);
          (void)flows_->wait(flow, id, 10s);
        }
      });
      if (!alive || process_->crashed()) return false;
      if (ended) return true;
    }
    return !process_->crashed();
  }

  void check() {
    for (const auto& [flow, id] : all_runs()) {
      const auto run = flows_->get(flow, id);
      if (!run && id.contains('-')) continue;  // a child whose parent has not come that far
      sim_.require(run.has_value(), "a run that was acknowledged is there");
      sim_.require(run->finished, fmt::format("run {} has ended; it is {}", run->id, run->status));
      check_run(*run);
    }
  }

  void check_run(const pawl::Run& run) {
    const auto& done = outside_.done[run.ulid];
    sim_.require(std::ranges::count(done, "close") >= 1, "the finalizer has run");
    if (run.state == RunState::done) {
      std::vector<std::string> order;
      for (const auto& name : done) {
        if (std::ranges::find(order, name) == order.end()) order.push_back(name);
      }
      const auto whole = run.flow == "order" ? std::vector<std::string>{"split", "bill", "close"}
                                             : std::vector<std::string>{"charge", "pack", "ship", "close"};
      sim_.require(order == whole, "a run that is done has done every step, in order");
      sim_.require(!outside_.refunded.contains(run.ulid), "nothing of it was undone");
    } else {
      sim_.require(outside_.charged.contains(run.ulid) == outside_.refunded.contains(run.ulid) ||
                       run.state == RunState::handed_off,
                   "what was charged was refunded");
    }
  }

  /// Before anybody retries a run whose condition did not come true.
  void check_dependents() {
    for (int i = kFirstDependent; i < kRuns; ++i) {
      const auto run = flows_->get("parcel", id_of(i));
      if (!run || !run->plan || !run->plan->after) continue;
      const auto& after = *run->plan->after;
      const bool success = after.ended == RunState::done || after.ended == RunState::handed_off;
      const bool fits =
          after.ended && (after.on == RunAfter::always || success == (after.on == RunAfter::success));
      if (fits) continue;
      sim_.require(run->state == RunState::cancelled, "a dependent whose condition is not met is cancelled");
      sim_.require(!outside_.charged.contains(run->ulid), "and has done nothing");
    }
  }

  sim::Simulation& sim_;
  sim::Disk disk_;
  Outside outside_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Flows> flows_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Lane> people_lane_;
  std::set<std::string> answered_;  // ids
  int begun_ = 0;
};

}  // namespace

Result<void> flow(sim::Simulation& sim) {
  FlowWorld world(sim);
  world.run();
  return {};
}

}  // namespace pawl::scenarios
