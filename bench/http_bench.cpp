// SPDX-License-Identifier: Apache-2.0
// The server over loopback, driven by wrk, beside a Beast server that only says hello and beside the engine
// and the flows without HTTP; then a thousand readers of live events.
//
// PAWL_BENCH_SECONDS is the length of one measurement, PAWL_BENCH_DIR where the data goes while it runs,
// PAWL_BENCH_ONLY the begin of the names that are measured.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "bench/engine_machine.hpp"
#include "bench/flows.hpp"
#include "bench/http_hello.hpp"
#include "bench/http_readers.hpp"
#include "bench/load.hpp"
#include "bench/meters.hpp"
#include "bench/report.hpp"
#include "pawl/engine.hpp"
#include "pawl/server.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kInstances = 10'000;
constexpr std::size_t kReaders = 1000;

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "http_bench: {}\n", what);
  std::exit(EXIT_FAILURE);
}

/// Runs a program and returns what it printed.
std::string output_of(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) give_up("pipe failed");
  std::vector<char*> raw;
  for (const auto& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (spawned != 0) give_up(arguments[0] + " could not be started; is it installed?");
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) give_up(arguments[0] + " failed: " + text);
  return text;
}

/// "1.23ms" in microseconds.
double micros_of(std::string_view text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return unit.starts_with("us") ? value : unit.starts_with("ms") ? value * 1e3 : value * 1e6;
}

/// What follows a mark in wrk's report.
std::string_view field_of(std::string_view report, std::string_view mark) {
  const auto at = report.find(mark);
  if (at == std::string_view::npos) give_up(fmt::format("wrk did not tell {}:\n{}", mark, report));
  const auto begin = report.find_first_not_of(' ', at + mark.size());
  return report.substr(begin, report.find_first_of(" \n", begin) - begin);
}

/// Drives a server with so many connections; `script` makes the requests.
Measured drive_http(std::uint16_t port, std::size_t connections, Seconds length, const fs::path& script) {
  const auto seconds = std::max(1, static_cast<int>(length.count() + 0.5));
  const auto report =
      output_of({"wrk", "-t1", fmt::format("-c{}", connections), fmt::format("-d{}s", seconds), "--latency",
                 "-s", script.string(), fmt::format("http://127.0.0.1:{}", port)});
  if (report.find("Non-2xx") != std::string::npos || report.find("Socket errors") != std::string::npos) {
    give_up("not every request was answered well:\n" + report);
  }
  double rate = 0;
  const auto text = field_of(report, "Requests/sec:");
  std::from_chars(text.data(), text.data() + text.size(), rate);
  return {.per_second = rate,
          .p50_us = micros_of(field_of(report, "50%")),
          .p99_us = micros_of(field_of(report, "99%"))};
}

struct World {
  explicit World(fs::path where) : directory(std::move(where)) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    pawl::Machines machines;
    machines.add<meter>();
    for (const int steps : {1, 4}) flows.add(make_flow(steps));
    flows.add_machines(machines);
    auto opened = pawl::Engine::open(runtime, std::move(machines),
                                     {.store = "sqlite:" + (directory / "http.db").string()});
    if (!opened) give_up(opened.error().to_string());
    engine = *std::move(opened);
    if (const auto attached = flows.attach(*engine); !attached) give_up(attached.error().to_string());
    auto started = pawl::Server::start(runtime, *engine, {.listen = "127.0.0.1:0", .flows = &flows});
    if (!started) give_up(started.error().to_string());
    server = *std::move(started);
    write_scripts();
    if (const auto failed = create_meters(*engine, kInstances)) give_up(failed->to_string());
  }
  ~World() {
    server.reset();
    flows.detach();
    engine.reset();
    fs::remove_all(directory);
  }

  void write_scripts() const {
    std::ofstream(directory / "get.lua") << R"(
request = function()
  return wrk.format("GET", string.format("/v1/instances/meter/meter-%018d", math.random(0, 9999)))
end
)";
    std::ofstream(directory / "send.lua") << R"(
local head = {["Content-Type"] = "application/json"}
request = function()
  local body = string.format('{"event":"Reading","payload":{"watt_hours":%d,"cents":%d,' ..
    '"at":"2026-03-14T15:09:26Z","meter":"keba-p30-17.419.322-connector-2"}}',
    math.random(1, 90000), math.random(1, 3000))
  return wrk.format("POST", string.format("/v1/instances/meter/meter-%018d/events", math.random(0, 9999)),
    head, body)
end
)";
    for (const int steps : {1, 4}) {
      std::ofstream(directory / fmt::format("flow.{}.lua", steps)) << fmt::format(R"(
local head = {{["Content-Type"] = "application/json"}}
local body = '{{"request":{{"item":"lamp","city":"Oslo","cents":1200}}}}'
request = function()
  return wrk.format("POST", "/v1/flows/flow{}/runs?wait=30s", head, body)
end
)",
                                                                                  steps);
    }
  }

  fs::path directory;
  pawl::ThreadRuntime runtime;
  pawl::Flows flows{runtime};
  std::unique_ptr<pawl::Engine> engine;
  std::unique_ptr<pawl::Server> server;
};

/// The same without HTTP, of what changes something: events, or flows that are started and awaited.
std::optional<Measured> drive_without_http(World& world, const std::string& kind, LoadOptions options) {
  Measured measured;
  if (kind == "send") {
    measured =
        drive_meters(*world.engine, options, [](pawl::Random& dice) { return dice.below(kInstances); });
  } else if (kind.starts_with("flow.")) {
    measured = drive_flows(world.flows, kind.back() - '0', options);
  } else {
    return std::nullopt;
  }
  if (measured.failed) give_up("a transition was refused");
  return measured;
}

bool is_wanted(std::string_view name) {
  const char* only = std::getenv("PAWL_BENCH_ONLY");
  return only == nullptr || name.starts_with(only);
}

/// One kind of request at one concurrency: seven rounds, that with the median ratio counts. Many short ones,
/// because the disk of a shared machine changes from one second to the next.
void measure_requests(World& world, const Hello& hello, const std::string& kind, std::size_t connections,
                      Seconds length) {
  struct Round {
    Measured baseline, http;
    std::optional<Measured> engine;
    double limit = 0;
    double batch = 0;  // events that shared a commit
    double ratio() const { return http.per_second / limit; }
  };
  const auto name = fmt::format("http.{}.{}", kind, connections);
  if (!is_wanted(name)) return;
  const auto script = world.directory / (kind + ".lua");
  std::array<Round, 7> rounds;
  for (auto& round : rounds) {
    round.baseline = drive_http(hello.port(), connections, length, script);
    round.limit = round.baseline.per_second;
    round.engine = drive_without_http(world, kind, {.outstanding = connections, .length = length / 2});
    if (round.engine) round.limit = std::min(round.limit, round.engine->per_second);
    const auto before = world.engine->stats();
    round.http = drive_http(world.server->port(), connections, length, script);
    const auto after = world.engine->stats();
    round.batch = static_cast<double>(after.transitions - before.transitions) /
                  static_cast<double>(std::max<std::uint64_t>(after.commits - before.commits, 1));
  }
  std::ranges::sort(rounds, {}, &Round::ratio);
  const auto& middle = rounds[rounds.size() / 2];
  report(name, middle.http.per_second, "1/s", middle.limit);
  report(name + ".hello", middle.http.per_second, "1/s", middle.baseline.per_second);
  if (middle.engine) report(name + ".engine", middle.http.per_second, "1/s", middle.engine->per_second);
  if (middle.engine) report(name + ".batch", middle.batch, "", static_cast<double>(connections));
  report(name + ".p50", middle.http.p50_us, "us", middle.baseline.p50_us);
  report(name + ".p99", middle.http.p99_us, "us", middle.baseline.p99_us);
}

/// When each entry became durable, as its caller learned it.
class Stamps {
 public:
  void stamp(std::int64_t seq) {
    if (seq < static_cast<std::int64_t>(times_.size())) {
      times_[static_cast<std::size_t>(seq)] = Clock::now().time_since_epoch().count();
    }
  }
  /// An entry whose caller has not been told yet is from this moment.
  Clock::time_point made_at(std::string_view id) const {
    std::size_t seq = 0;
    const auto dot = id.rfind('.') + 1;
    std::from_chars(id.data() + dot, id.data() + id.size(), seq);
    const auto ticks = seq < times_.size() ? times_[seq].load() : 0;
    return ticks == 0 ? Clock::now() : Clock::time_point(Clock::duration(ticks));
  }

 private:
  std::vector<std::atomic<std::int64_t>> times_ =
      std::vector<std::atomic<std::int64_t>>(std::size_t{8} << 20);
};

/// A thousand streams while `load` sends; the budget is one second behind the newest entry.
template <class Load>
void measure_readers(World& world, const std::string& name, const std::vector<std::string>& paths,
                     Load load) {
  Stamps stamps;
  const double before = resident_bytes();
  Readers readers(world.server->port(), paths, [&](std::string_view id) { return stamps.made_at(id); });
  load(stamps);
  const double after = resident_bytes();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  readers.stop();
  if (readers.ended() != 0) give_up(fmt::format("{} streams were ended", readers.ended()));
  report(name + ".lag", readers.worst_lag(), "s", 1.0);
  report(name + ".events", static_cast<double>(readers.events()), "", static_cast<double>(paths.size()));
  report(name + ".memory", (after - before) / static_cast<double>(paths.size()), "B",
         static_cast<double>(pawl::HttpLimits{}.stream_buffer));
}

/// 200 events a second for everybody.
void measure_all_events(World& world, Seconds length) {
  const std::vector<std::string> paths(kReaders, "/v1/events");
  measure_readers(world, "http.subscribers.all", paths, [&](Stamps& stamps) {
    const auto begin = Clock::now();
    for (int i = 0; Clock::now() - begin < 3 * length; ++i) {
      std::this_thread::sleep_until(begin + std::chrono::milliseconds(5) * i);
      world.engine->submit(pawl::Transaction{}.send<meter>(key_of(static_cast<std::uint64_t>(i) % kInstances),
                                                           Reading{.watt_hours = 1}),
                           [&](const auto& outcome) {
                             if (outcome) stamps.stamp(outcome->front().seq);
                           });
    }
  });
}

/// Each reader follows an instance of its own, while all instances are sent to as fast as the engine goes.
void measure_filtered_events(World& world, Seconds length) {
  std::vector<std::string> paths;
  for (std::uint64_t i = 0; i < kReaders; ++i) paths.push_back("/v1/events?machine=meter&key=" + key_of(i));
  measure_readers(world, "http.subscribers.filtered", paths, [&](Stamps& stamps) {
    pawl::Random random(11);
    const auto measured =
        drive({.outstanding = 256, .length = 3 * length}, [&](std::size_t, Answered answered) {
          world.engine->submit(
              pawl::Transaction{}.send<meter>(key_of(random.below(kInstances)), Reading{.watt_hours = 1}),
              [&, answered = std::move(answered)](const auto& outcome) mutable {
                if (outcome) stamps.stamp(outcome->front().seq);
                answered(outcome.has_value());
              });
        });
    report("http.subscribers.filtered.load", measured.per_second, "1/s", measured.per_second);
  });
}

}  // namespace
}  // namespace bench

int main() {
  using namespace bench;
  const char* place = std::getenv("PAWL_BENCH_DIR");
  const char* text = std::getenv("PAWL_BENCH_SECONDS");
  const Seconds length(text != nullptr ? std::stod(text) : 2.0);
  World world(fs::path(place != nullptr ? place : "build/bench") / "http_bench.data");
  {
    const Hello hello;
    measure_requests(world, hello, "get", 64, length / 2);
    for (const auto* kind : {"send", "flow.1", "flow.4"}) {
      for (const std::size_t connections : {1, 64, 256}) {
        measure_requests(world, hello, kind, connections, length / 2);
      }
    }
  }
  if (is_wanted("http.subscribers.all")) measure_all_events(world, length);
  if (is_wanted("http.subscribers.filtered")) measure_filtered_events(world, length);
  return EXIT_SUCCESS;
}
