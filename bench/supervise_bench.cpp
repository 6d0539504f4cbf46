// SPDX-License-Identifier: Apache-2.0
// What supervising costs: a worker at rest per strict tick, against a bare timer wheel of the same size in
// the same run; ten thousand workers at ten ticks a second, against a quarter of a core; the memory of a
// hundred thousand; how soon an action begins after an observation has changed, against a bare commit.
//
//     PAWL_BENCH_DIR      where the stores are made; the temporary directory by default
//     PAWL_BENCH_SECONDS  how long the processor's share is measured
//     PAWL_BENCH_ONLY     only points whose name contains this
//     PAWL_BENCH_WORKERS  how many workers lie in memory
//     PAWL_BENCH_ROUNDS   how many reactions are measured
#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/engine_machine.hpp"
#include "bench/meters.hpp"
#include "bench/report.hpp"
#include "bench/supervise_allocations.hpp"
#include "pawl/supervisor_kit.hpp"
#include "supervise/wheel.hpp"

namespace bench {

using namespace std::chrono_literals;

struct Shared {
  std::atomic<bool> on = true;
  std::atomic<std::int64_t> changed_ns = 0;
  std::atomic<std::int64_t> acted_ns = 0;
};

struct SensorObserved {
  bool on = true;
};
struct SensorDesired {
  int limit = 10;
};
struct SensorTools {
  std::shared_ptr<Shared> shared;
};

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Runs while what it looks at is on; otherwise switches it on.
struct Sensor : pawl::Worker<SensorObserved, SensorDesired, SensorTools> {
  struct Stopped : pawl::phase::Stopped {};
  struct Running : pawl::phase::Running {};
  using States = pawl::States<Stopped, Running>;
  struct SwitchOn {
    static pawl::Result<void> run(SensorTools& tools, const SensorDesired&, const pawl::ActionContext&) {
      tools.shared->acted_ns = now_ns();
      tools.shared->on = true;
      return {};
    }
  };
  static pawl::Next<pawl::Go<Running>> next(Stopped, const Snapshot&) {
    return pawl::Go<Running>{"it is wanted"};
  }
  static pawl::Next<pawl::Stay, pawl::Do<SwitchOn>> next(Running, const Snapshot& now) {
    if (!now.observed.on) return pawl::Do<SwitchOn>{"it is off"};
    return pawl::Stay{"it is on"};
  }
  static pawl::Next<pawl::Go<Stopped>> stop(Running, const Snapshot&) { return pawl::Go<Stopped>{"asked"}; }
  static pawl::Result<SensorObserved> collect(SensorTools& tools, const SensorDesired&,
                                              const pawl::CollectContext&) {
    const bool on = tools.shared == nullptr || tools.shared->on;
    if (!on && tools.shared->changed_ns == 0) tools.shared->changed_ns = now_ns();
    return SensorObserved{on};
  }
};

/// The one whose reaction is measured: looked at often, whatever the others are.
struct Watched : Sensor {
  static constexpr std::string_view kType = "watched";
  static constexpr pawl::Duration kObserveEvery = 10ms;
};

struct HallObserved {};
struct HallDesired {
  int sensors = 1000;
};

struct Hall : pawl::Worker<HallObserved, HallDesired> {
  struct Stopped : pawl::phase::Stopped {};
  struct Running : pawl::phase::Running {};
  using States = pawl::States<Stopped, Running>;
  static pawl::Next<pawl::Go<Running>> next(Stopped, const Snapshot&) {
    return pawl::Go<Running>{"it is wanted"};
  }
  static pawl::Next<pawl::Stay> next(Running, const Snapshot&) { return pawl::Stay{"it runs"}; }
  static pawl::Next<pawl::Go<Stopped>> stop(Running, const Snapshot&) { return pawl::Go<Stopped>{"asked"}; }
  static pawl::Result<HallObserved> collect(pawl::NoTools&, const HallDesired&, const pawl::CollectContext&) {
    return HallObserved{};
  }
  static std::vector<pawl::ChildSpec> children(const HallDesired& desired, const pawl::UserSpec&) {
    std::vector<pawl::ChildSpec> made;
    for (int i = 0; i < desired.sensors; ++i)
      made.push_back({.name = fmt::format("s{}", i),
                      .worker_type = "sensor",
                      .user_spec = {.config = R"({"limit": 5})"}});
    return made;
  }
};

namespace {

namespace fs = std::filesystem;

[[noreturn]] void give_up(std::string_view why) {
  fmt::print(stderr, "supervise_bench: {}\n", why);
  std::exit(1);
}

std::string setting(const char* name, const char* default_value) {
  const auto* text = std::getenv(name);
  return text != nullptr ? text : default_value;
}

bool wanted(std::string_view name) {
  return name.find(setting("PAWL_BENCH_ONLY", "")) != std::string_view::npos;
}

double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

pawl::WorkerTypes make_types(std::shared_ptr<Shared> shared = {}) {
  pawl::WorkerTypes types;
  types.add<Sensor>([](const pawl::WorkerIdentity&) { return SensorTools{}; });
  types.add<Watched>([shared](const pawl::WorkerIdentity&) { return SensorTools{shared}; });
  types.add<Hall>();
  return types;
}

pawl::TreeSpec halls(int workers) {
  constexpr int kPerHall = 1000;
  pawl::TreeSpec tree;
  for (int i = 0; i * kPerHall < workers; ++i) {
    tree.children.push_back(
        {.name = fmt::format("hall-{}", i),
         .worker_type = "hall",
         .user_spec = {.config =
                           fmt::format(R"({{"sensors": {}}})", std::min(kPerHall, workers - i * kPerHall))}});
  }
  return tree;
}

/// A program with a supervisor, on real threads.
struct World {
  explicit World(pawl::SupervisorOptions options, std::shared_ptr<Shared> shared = {})
      : directory(fs::path(setting("PAWL_BENCH_DIR", fs::temp_directory_path().c_str())) /
                  "pawl-supervise-bench"),
        supervisor(runtime, make_types(std::move(shared)), std::move(options)) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    pawl::Machines machines;
    machines.add<meter>();
    supervisor.add_machines(machines);
    auto opened = pawl::Engine::open(runtime, std::move(machines),
                                     {.store = "sqlite:" + (directory / "workers.db").string(),
                                      .work_threads = 2,
                                      .pools = {{std::string(pawl::Supervisor::kPool), 8}}});
    if (!opened) give_up(opened.error().to_string());
    engine = *std::move(opened);
    if (const auto attached = supervisor.attach(*engine); !attached) give_up(attached.error().to_string());
  }
  ~World() {
    supervisor.detach();
    engine.reset();
    fs::remove_all(directory);
  }

  void run_all(int workers) {
    if (const auto applied = supervisor.apply(halls(workers)); !applied) give_up(applied.error().to_string());
    const auto all = static_cast<std::size_t>(workers) + supervisor.applied().value().first.children.size();
    while (engine->counts()["worker_sensor"]["Running"] < static_cast<std::size_t>(workers))
      std::this_thread::sleep_for(20ms);
    while (supervisor.stats().workers < all) std::this_thread::sleep_for(20ms);
  }

  fs::path directory;
  pawl::ThreadRuntime runtime;
  pawl::Supervisor supervisor;
  std::unique_ptr<pawl::Engine> engine;
};

/// A timer per worker in a wheel, each set again when it is due: what any scheduler must do.
struct BareTimer : pawl::supervise::WheelLink {
  std::uint64_t fired = 0;
};

double bare_wheel_ns(std::size_t timers, int ticks) {
  pawl::supervise::Wheel wheel;
  std::vector<BareTimer> all(timers);
  for (auto& timer : all) wheel.set(timer, 1);
  const auto before = thread_cpu_seconds();
  for (std::int64_t tick = 1; tick <= ticks; ++tick) {
    wheel.advance(tick, [&](pawl::supervise::WheelLink& due) {
      ++static_cast<BareTimer&>(due).fired;
      wheel.set(due, tick + 1);
    });
  }
  return (thread_cpu_seconds() - before) * 1e9 / static_cast<double>(timers) / ticks;
}

/// In virtual time, so that there is nothing but the ticks: no waiting, no collecting, no commits.
void measure_idle() {
  if (!wanted("supervise.idle")) return;
  constexpr int kWorkers = 10'000;
  constexpr int kTicks = 200;
  pawl::SupervisorKit kit([](pawl::Runtime&) { return make_types(); },
                          {.simulation = {.step_limit = 100'000'000},
                           .supervisor = {.strict = true, .observe_every = std::chrono::hours(10)}});
  if (!kit.supervisor().apply(halls(kWorkers))) give_up("the tree is refused");
  if (!kit.wait_until([&] { return kit.engine().counts()["worker_sensor"]["Running"] == kWorkers; }))
    give_up("not all run");
  kit.advance(1s);
  std::vector<double> costs;
  std::vector<double> bare;
  std::uint64_t allocated = 0;
  for (int round = 0; round < 5; ++round) {
    const auto decisions = kit.supervisor().stats().decisions;
    const auto allocated_before = allocations();
    const auto before = thread_cpu_seconds();
    kit.advance(100ms * kTicks);
    const auto cost = thread_cpu_seconds() - before;
    allocated = allocations() - allocated_before;
    const auto made = kit.supervisor().stats().decisions - decisions;
    if (made < std::uint64_t{kWorkers} * (kTicks - 1)) give_up("not every worker was asked at each tick");
    costs.push_back(cost * 1e9 / static_cast<double>(made));
    bare.push_back(bare_wheel_ns(kWorkers, kTicks));
  }
  report("supervise.idle.tick", median(costs), "ns", median(bare));
  // The simulation itself needs some for each tick; a worker needs none.
  report("supervise.idle.allocations", static_cast<double>(allocated) / kTicks / kWorkers, "per tick", 1);
}

/// Strict ticks, an observation a second each, all on one core at most.
void measure_cpu() {
  if (!wanted("supervise.cpu")) return;
  constexpr int kWorkers = 10'000;
  World world({.strict = true});
  world.run_all(kWorkers);
  const auto length = std::chrono::duration<double>(std::stod(setting("PAWL_BENCH_SECONDS", "5")));
  std::this_thread::sleep_for(1s);
  const auto before = world.supervisor.stats();
  const auto cpu = process_cpu_seconds();
  std::this_thread::sleep_for(length);
  const auto used = process_cpu_seconds() - cpu;
  const auto after = world.supervisor.stats();
  report("supervise.cpu.10000", used / length.count(), "cores", 0.25);
  report("supervise.cpu.10000.ticks", static_cast<double>(after.ticks - before.ticks) / length.count(),
         "per second", 10);
  report("supervise.cpu.10000.collections",
         static_cast<double>(after.collections - before.collections) / length.count(), "per second",
         kWorkers);
}

/// What is allocated and not freed.
double heap_bytes() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// A worker's share of the supervisor alone, against two kibibytes, and of the whole program with its engine,
/// against the stacks of the twenty-four threads that a worker takes where each has its own.
void measure_memory() {
  if (!wanted("supervise.memory")) return;
  const auto workers = std::stoi(setting("PAWL_BENCH_WORKERS", "100000"));
  World world({.tick = 1s, .observe_every = 10s});
  const auto empty = resident_bytes();
  world.run_all(workers);
  const auto full = resident_bytes();
  const auto used = heap_bytes();
  world.supervisor.detach();
  report("supervise.memory.own", (used - heap_bytes()) / workers, "bytes", 2048);
  report("supervise.memory.resident", (full - empty) / workers, "bytes", 24 * 2048);
}

/// From the collection that saw a change to the begin of the action, with one durable commit between, among
/// so many workers in all, the others of which are observed each second.
void measure_reaction(int workers) {
  const auto name = fmt::format("supervise.reaction.{}", workers);
  if (!wanted(name)) return;
  const auto rounds = std::stoi(setting("PAWL_BENCH_ROUNDS", "1000"));
  const auto shared = std::make_shared<Shared>();
  World world({.tick = 1ms}, shared);
  if (workers > 1) world.run_all(workers - 1);
  if (!world.supervisor.upsert({.name = "watched", .worker_type = "watched"})) give_up("refused");
  while (world.supervisor.show("watched")->state != "Running") std::this_thread::sleep_for(1ms);
  std::vector<double> reactions;
  std::vector<double> commits;
  if (!world.engine->create<meter>("m")) give_up("no meter");
  for (int round = 0; round < rounds; ++round) {
    shared->changed_ns = 0;
    shared->acted_ns = 0;
    shared->on = false;
    while (shared->acted_ns == 0) std::this_thread::sleep_for(1ms);
    reactions.push_back(static_cast<double>(shared->acted_ns - shared->changed_ns) / 1e3);
    while (!world.supervisor.show("watched")->action.empty()) std::this_thread::sleep_for(1ms);
    const auto begun = now_ns();
    if (!world.engine->send<meter>("m", Reading{.watt_hours = 1})) give_up("refused");
    commits.push_back(static_cast<double>(now_ns() - begun) / 1e3);
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + round % 7));  // in no step with its interval
  }
  std::ranges::sort(reactions);
  std::ranges::sort(commits);
  const auto at = [](const std::vector<double>& sorted, double part) {
    return sorted[static_cast<std::size_t>(static_cast<double>(sorted.size() - 1) * part)];
  };
  report(name + ".p50", at(reactions, 0.5), "us", at(commits, 0.5));
  report(name + ".p99", at(reactions, 0.99), "us", at(commits, 0.99));
}

}  // namespace
}  // namespace bench

int main() {
  bench::measure_idle();
  bench::measure_cpu();
  bench::measure_memory();
  bench::measure_reaction(1);
  bench::measure_reaction(10'000);
}
