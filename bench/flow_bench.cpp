// SPDX-License-Identifier: Apache-2.0
// Flows of one and of four steps that do nothing, started and awaited, against as many bare commits: an
// instance that is created and sent as many events, each when the one before is durable. Also what a waiting
// run needs in memory.
//
//     PAWL_BENCH_DIR      where the stores are made; the temporary directory by default
//     PAWL_BENCH_SECONDS  how long each point is measured in one round
//     PAWL_BENCH_ONLY     only points whose name contains this
//     PAWL_BENCH_RUNS     how many runs wait
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/engine_machine.hpp"
#include "bench/flows.hpp"
#include "bench/load.hpp"
#include "bench/meters.hpp"
#include "bench/report.hpp"
#include "pawl/flows.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bench;
using namespace std::chrono_literals;

[[noreturn]] void give_up(std::string_view why) {
  fmt::print(stderr, "flow_bench: {}\n", why);
  std::exit(1);
}

std::string setting(const char* name, const char* default_value) {
  const auto* text = std::getenv(name);
  return text != nullptr ? text : default_value;
}

/// An engine with the flows and the meters in a directory of its own.
struct World {
  World()
      : directory(fs::path(setting("PAWL_BENCH_DIR", fs::temp_directory_path().c_str())) /
                  "pawl-flow-bench") {
    fs::remove_all(directory);
    fs::create_directories(directory);
    for (const int steps : {1, 4}) flows.add(make_flow(steps));
    flows.add(pawl::flow<Order, Shipment>("holder").remote("wait").end());
    pawl::Machines machines;
    machines.add<meter>();
    flows.add_machines(machines);
    auto opened = pawl::Engine::open(
        runtime, std::move(machines),
        {.store = "sqlite:" + (directory / "flows.db").string(), .work_threads = 2, .pools = {{"line", 1}}});
    if (!opened) give_up(opened.error().to_string());
    engine = *std::move(opened);
    if (const auto attached = flows.attach(*engine); !attached) give_up(attached.error().to_string());
  }
  ~World() {
    flows.detach();
    engine.reset();
    fs::remove_all(directory);
  }

  fs::path directory;
  pawl::ThreadRuntime runtime;
  pawl::Flows flows{runtime};
  std::unique_ptr<pawl::Engine> engine;
  std::atomic<std::uint64_t> next = 0;
};

/// Sends `left` events to one instance, each when the one before is durable.
void send_on(pawl::Engine& engine, std::string key, int left, Answered answered) {
  if (left == 0) return answered(true);
  auto copy = key;
  engine.submit(
      pawl::Transaction{}.send<meter>(std::move(copy), Reading{.watt_hours = 7}),
      [&engine, key = std::move(key), left, answered = std::move(answered)](const auto& done) mutable {
        if (!done) return answered(false);
        send_on(engine, std::move(key), left - 1, std::move(answered));
      });
}

Measured drive_commits(World& world, int steps, LoadOptions options) {
  return drive(options, [&](std::size_t, Answered answered) {
    auto key = key_of(world.next++);
    auto copy = key;
    world.engine->submit(
        pawl::Transaction{}.create<meter>(std::move(copy)),
        [&world, steps, key = std::move(key), answered = std::move(answered)](const auto& made) mutable {
          if (!made) return answered(false);
          send_on(*world.engine, std::move(key), steps, std::move(answered));
        });
  });
}

void measure(int steps, std::size_t outstanding) {
  constexpr int kRounds = 5;
  const auto name = fmt::format("flow.{}.{}", steps, outstanding);
  if (name.find(setting("PAWL_BENCH_ONLY", "")) == std::string::npos) return;
  World world;
  const LoadOptions options{.outstanding = outstanding,
                            .length = Seconds(std::stod(setting("PAWL_BENCH_SECONDS", "1")))};
  struct Round {
    Measured flows;
    Measured commits;
  };
  std::vector<Round> rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back({drive_flows(world.flows, steps, options), drive_commits(world, steps, options)});
    if (rounds.back().flows.failed || rounds.back().commits.failed) give_up(name + ": a run failed");
  }
  // The round in the middle, by how much dearer a flow is than its commits.
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2, {}, [](const Round& round) {
    return round.commits.per_second / round.flows.per_second;
  });
  const auto& middle = rounds[kRounds / 2];
  report(name, 1e6 / middle.flows.per_second, "us", 1e6 / middle.commits.per_second);
  report(name + ".rate", middle.flows.per_second, "flows/s", middle.commits.per_second);
  report(name + ".p50", middle.flows.p50_us, "us", middle.commits.p50_us);
  report(name + ".p99", middle.flows.p99_us, "us", middle.commits.p99_us);
  report(name + ".cpu", middle.flows.cpu_us, "us", middle.commits.cpu_us);
}

/// Bytes of memory per run that waits for its time, or for its turn, against a kibibyte.
void measure_memory(const std::string& kind, const pawl::RunOptions& options) {
  const auto name = "flow.memory." + kind;
  if (name.find(setting("PAWL_BENCH_ONLY", "")) == std::string::npos) return;
  const auto runs = std::stoull(setting("PAWL_BENCH_RUNS", "100000"));
  World world;
  // It waits for a worker that never comes, and keeps the only place in the queue.
  const auto holder = world.flows.start("holder", "{}", {.queue = "line"});
  if (!holder) give_up(holder.error().to_string());
  const auto request = pawl::encode(Order{}).value();
  const auto before = resident_bytes();
  std::atomic<std::uint64_t> left = runs;
  for (std::uint64_t i = 0; i < runs; ++i) {
    while (left > runs - i + 4096) std::this_thread::sleep_for(1ms);
    world.flows.start("flow4", request, options, [&](const auto& run) {
      if (!run) give_up(run.error().to_string());
      --left;
    });
  }
  while (left != 0) std::this_thread::sleep_for(1ms);
  report(name, (resident_bytes() - before) / static_cast<double>(runs), "bytes", 1024);
}

}  // namespace

int main() {
  for (const int steps : {1, 4}) {
    for (const std::size_t outstanding : {1, 64, 256}) measure(steps, outstanding);
  }
  measure_memory("delayed", {.delay = 24h});
  measure_memory("queued", {.queue = "line"});
  return 0;
}
