// SPDX-License-Identifier: Apache-2.0
// The durable engine against a plain journal and a bare fdatasync on the same disk in the same run.
//
// PAWL_BENCH_INSTANCES is the size of the large part (1000000; 0 leaves it out), PAWL_BENCH_SECONDS the
// length of one measurement, PAWL_BENCH_DIR where the data goes while it runs, PAWL_BENCH_OUTSTANDING the
// only number of outstanding requests (1, 16, 256 or 4096) that is measured.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "bench/engine_machine.hpp"
#include "bench/journal.hpp"
#include "bench/load.hpp"
#include "bench/meters.hpp"
#include "bench/report.hpp"
#include "pawl/engine.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSmall = 10'000;
constexpr std::array<std::size_t, 4> kOutstanding{1, 16, 256, 4096};

struct Settings {
  std::uint64_t large = 1'000'000;
  Seconds length{1.5};
  std::size_t outstanding = 0;  // 0: each of them
  fs::path directory;

  std::string store(std::uint64_t instances) const {
    return (directory / fmt::format("{}.db", instances)).string();
  }
};

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "engine_bench: {}\n", what);
  std::exit(EXIT_FAILURE);
}

/// "10k" or "1m".
std::string short_name(std::uint64_t count) {
  return count % 1'000'000 == 0 ? fmt::format("{}m", count / 1'000'000) : fmt::format("{}k", count / 1000);
}

/// An engine with its threads; destroying it closes the store in good order.
struct World {
  explicit World(const std::string& path) {
    pawl::Machines machines;
    machines.add<meter>();
    auto opened = pawl::Engine::open(runtime, std::move(machines), {.store = "sqlite:" + path});
    if (!opened) give_up(opened.error().to_string());
    engine = *std::move(opened);
  }
  pawl::ThreadRuntime runtime;
  std::unique_ptr<pawl::Engine> engine;
};

/// Which instance a request goes to.
struct Choice {
  std::uint64_t instances = 0;
  bool recent = false;  // 90 % of the requests go to the newest 1 %

  std::uint64_t pick(pawl::Random& random) const {
    const auto newest = instances / 100;
    if (recent && random.below(10) != 0) return instances - 1 - random.below(newest);
    return random.below(instances);
  }
};

std::vector<pawl::Random> generators(std::size_t count) {
  std::vector<pawl::Random> all;
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(i + 1);
  return all;
}

Measured drive_engine(pawl::Engine& engine, const Choice& choice, LoadOptions options) {
  auto measured = drive_meters(engine, options, [&](pawl::Random& dice) { return choice.pick(dice); });
  if (measured.failed) give_up("a transition was refused");
  return measured;
}

/// The texts of a usual entry.
std::string usual_data() {
  return pawl::encode(Session{.watt_hours = 1'234'567, .cents = 41'152, .readings = 27}).value();
}
std::string usual_event() { return pawl::encode(Reading{.watt_hours = 45'000, .cents = 1'500}).value(); }

Measured drive_journal(const Settings& settings, const Choice& choice, LoadOptions options) {
  Journal journal(settings.directory / "journal");
  const auto data = usual_data();
  const auto event = usual_event();
  auto random = generators(options.outstanding);
  auto measured = drive(options, [&](std::size_t slot, Answered answered) {
    journal.append(key_of(choice.pick(random[slot])), data, event, std::move(answered));
  });
  if (measured.failed) give_up("the journal could not be written");
  return measured;
}

/// A 4 KiB append with fdatasync, alone.
Measured measure_sync(const Settings& settings) {
  AppendFile file(settings.directory / "sync");
  const std::string page(4096, 'x');
  std::vector<float> micros;
  for (const auto end = Clock::now() + settings.length / 10; Clock::now() < end;) {
    const auto begin = Clock::now();
    if (!file.append_durably(page)) give_up("a page could not be written");
    micros.push_back(std::chrono::duration<float, std::micro>(Clock::now() - begin).count());
  }
  return {.p50_us = percentile(micros, 0.5), .p99_us = percentile(micros, 0.99)};
}

void create_instances(pawl::Engine& engine, std::uint64_t count) {
  if (const auto failed = create_meters(engine, count)) give_up(failed->to_string());
}

/// CPU per transition by "uniform.256" and so on, of the small part for the large one.
using CpuByPoint = std::map<std::string, double>;

/// The engine and its baselines, one right after the other.
struct Round {
  Measured sync;
  Measured journal;
  Measured pawl;
  double ratio() const { return pawl.per_second / journal.per_second; }
};

/// Several short rounds; that with the median ratio counts. What else the machine does disturbs a round as a
/// whole, or makes it an outlier.
Round measure_point(const Settings& settings, pawl::Engine& engine, const Choice& choice,
                    std::size_t outstanding) {
  std::array<Round, 5> rounds;
  const LoadOptions options{.outstanding = outstanding, .warm_up = settings.length / 5};
  for (auto& round : rounds) {
    round.sync = measure_sync(settings);
    auto part = options;
    part.length = settings.length / 5;
    round.journal = drive_journal(settings, choice, part);
    part.length = settings.length / 3;
    round.pawl = drive_engine(engine, choice, part);
  }
  std::ranges::sort(rounds, {}, &Round::ratio);
  return rounds[rounds.size() / 2];
}

/// Every combination of choice and concurrency.
CpuByPoint measure_points(const Settings& settings, pawl::Engine& engine, std::uint64_t instances,
                          const CpuByPoint& smaller) {
  CpuByPoint cpu;
  for (const bool recent : {false, true}) {
    for (const auto outstanding : kOutstanding) {
      if (settings.outstanding != 0 && settings.outstanding != outstanding) continue;
      const auto point = fmt::format("{}.{}", recent ? "recent" : "uniform", outstanding);
      const auto name = fmt::format("{}.{}", short_name(instances), point);
      const auto [sync, journal, pawl] = measure_point(settings, engine, {instances, recent}, outstanding);
      report("transitions." + name, pawl.per_second, "1/s", journal.per_second);
      report("ack_p50." + name, pawl.p50_us, "us", sync.p50_us);
      report("ack_p99." + name, pawl.p99_us, "us", sync.p99_us);
      report("cpu_per_transition." + name, pawl.cpu_us, "us", journal.cpu_us);
      if (const auto small = smaller.find(point); small != smaller.end()) {
        report("cpu_growth." + point, pawl.cpu_us, "us", small->second);
      }
      cpu[point] = pawl.cpu_us;
    }
  }
  return cpu;
}

/// Reads per second of one thread until `stop`.
double count_reads(const pawl::Engine& engine, std::uint64_t instances, const std::atomic<bool>& stop) {
  pawl::Random random(99);
  std::uint64_t reads = 0;
  const auto begin = Clock::now();
  for (; !stop; ++reads) {
    if (!engine.get<meter>(key_of(random.below(instances)))) give_up("an instance could not be read");
  }
  return static_cast<double>(reads) / Seconds(Clock::now() - begin).count();
}

template <class During>
double reads_during(const pawl::Engine& engine, std::uint64_t instances, During during) {
  std::atomic<bool> stop = false;
  double rate = 0;
  std::thread reader([&] { rate = count_reads(engine, instances, stop); });
  during();
  stop = true;
  reader.join();
  return rate;
}

void measure_reads(const Settings& settings, pawl::Engine& engine, std::uint64_t instances) {
  const double alone = reads_during(engine, instances, [&] { std::this_thread::sleep_for(settings.length); });
  const double beside = reads_during(engine, instances, [&] {
    (void)drive_engine(engine, {instances, false}, {.outstanding = 256, .length = settings.length});
  });
  report("reads_while_writing", beside, "1/s", alone);
}

CpuByPoint run_small(const Settings& settings) {
  const auto path = settings.store(kSmall);
  create_instances(*World(path).engine, kSmall);
  const auto size = fs::file_size(path);
  CpuByPoint cpu;
  std::uint64_t transitions = 0;
  {
    World world(path);
    cpu = measure_points(settings, *world.engine, kSmall, {});
    measure_reads(settings, *world.engine, kSmall);
    transitions = world.engine->stats().transitions;
  }
  const auto grown = static_cast<double>(fs::file_size(path) - size);
  report("bytes_per_transition", grown / static_cast<double>(transitions), "B",
         static_cast<double>(usual_data().size() + usual_event().size()));
  return cpu;
}

/// Runs the large part in a process of its own, which ends like a crash with the store open.
void run_large_until_killed(const Settings& settings, const CpuByPoint& small) {
  const auto child = fork();
  if (child < 0) give_up("fork failed");
  if (child == 0) {
    World world(settings.store(settings.large));
    const auto begin = Clock::now();
    create_instances(*world.engine, settings.large);
    fmt::print(stderr, "{} instances made in {:.1f} s\n", settings.large,
               Seconds(Clock::now() - begin).count());
    measure_points(settings, *world.engine, settings.large, small);
    std::fflush(stdout);
    raise(SIGKILL);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    give_up("the large part failed");
  }
}

/// Seconds to read the store's files from begin to end.
double read_sequentially(const std::string& path) {
  const auto begin = Clock::now();
  std::vector<char> buffer(std::size_t{1} << 20);
  for (const auto* suffix : {"", "-wal"}) {
    std::ifstream file(path + suffix, std::ios::binary);
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {}
  }
  return Seconds(Clock::now() - begin).count();
}

void measure_reopening(const Settings& settings) {
  const auto path = settings.store(settings.large);
  const double reading = read_sequentially(path);
  malloc_trim(0);
  const double before = resident_bytes();
  const auto begin = Clock::now();
  const World world(path);
  const double opening = Seconds(Clock::now() - begin).count();
  malloc_trim(0);
  const auto stats = world.engine->stats();
  const auto instances = static_cast<double>(stats.instances);
  report("reopen." + short_name(settings.large), opening, "s", reading);
  // Nothing has been read since opening, so no data is cached: this is heads, keys and the index.
  report("memory_per_instance", (resident_bytes() - before) / instances, "B",
         static_cast<double>(stats.memory_per_instance));
}

Settings settings_from_environment() {
  Settings settings;
  if (const char* count = std::getenv("PAWL_BENCH_INSTANCES")) settings.large = std::stoull(count);
  if (const char* length = std::getenv("PAWL_BENCH_SECONDS")) settings.length = Seconds(std::stod(length));
  if (const char* only = std::getenv("PAWL_BENCH_OUTSTANDING")) settings.outstanding = std::stoull(only);
  const char* place = std::getenv("PAWL_BENCH_DIR");
  settings.directory = fs::path(place != nullptr ? place : "build/bench") / "engine_bench.data";
  return settings;
}

}  // namespace
}  // namespace bench

int main() {
  using namespace bench;
  const auto settings = settings_from_environment();
  fs::remove_all(settings.directory);
  fs::create_directories(settings.directory);
  const auto cpu = run_small(settings);
  std::fflush(stdout);
  if (settings.large > 0) {
    run_large_until_killed(settings, cpu);
    measure_reopening(settings);
  }
  fs::remove_all(settings.directory);
  return EXIT_SUCCESS;
}
