// SPDX-License-Identifier: Apache-2.0
// The durable engine on PostgreSQL against the obvious way in the same run: one transaction per transition,
// which updates a row and inserts an event, on 16 connections. pgbench's TPC-B-like rate stands beside it.
//
// The server is the program's own, with its default settings. PAWL_BENCH_SECONDS is twice the length
// of one of five rounds, PAWL_BENCH_DIR where the data goes while it runs, PAWL_BENCH_ONLY part of the names
// that are measured.
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "bench/engine_machine.hpp"
#include "bench/load.hpp"
#include "bench/meters.hpp"
#include "bench/report.hpp"
#include "pawl/engine.hpp"
#include "tests/support/postgres_server.hpp"

namespace bench {
namespace {

using pawl::test::Server;

constexpr std::uint64_t kInstances = 10'000;
constexpr std::array<std::size_t, 4> kOutstanding{1, 16, 256, 4096};
constexpr int kConnections = 16;

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "postgres_bench: {}\n", what);
  std::exit(EXIT_FAILURE);
}

bool is_wanted(std::string_view name) {
  const char* only = std::getenv("PAWL_BENCH_ONLY");
  return only == nullptr || name.find(only) != std::string_view::npos;
}

/// One transaction per transition, as a program without Pawl would do it.
class Obvious {
 public:
  explicit Obvious(const Server& server) : server_(server) {
    server.run("postgres",
               "CREATE TABLE instance(key text PRIMARY KEY, state text NOT NULL, version bigint NOT NULL, "
               "data text NOT "
               "NULL); CREATE TABLE event(seq bigserial PRIMARY KEY, key text NOT NULL, event text NOT NULL, "
               "payload text "
               "NOT NULL)");
    server.run("postgres",
               fmt::format("INSERT INTO instance SELECT 'meter-' || lpad(n::text, 18, '0'), 'idle', 1, '{}' "
                           "FROM generate_series(0, {}) n",
                           data_, kInstances - 1));
  }

  /// Transitions per second.
  double run(Seconds length) {
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> done = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < kConnections; ++i) {
      threads.emplace_back([&, i] { work(static_cast<std::uint64_t>(i), stop, done); });
    }
    std::this_thread::sleep_for(Seconds(0.3));
    const auto before = done.load();
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(length);
    const Seconds taken = std::chrono::steady_clock::now() - begin;
    const auto count = done.load() - before;
    stop = true;
    threads.clear();
    return static_cast<double>(count) / taken.count();
  }

 private:
  static void check(PGresult* raw) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(raw, &PQclear);
    const auto status = PQresultStatus(raw);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) give_up(PQresultErrorMessage(raw));
  }

  void work(std::uint64_t seed, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& done) const {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> db(PQconnectdb(server_.url("postgres").c_str()),
                                                          &PQfinish);
    if (PQstatus(db.get()) != CONNECTION_OK) give_up(PQerrorMessage(db.get()));
    const auto prepare = [&](const char* name, const char* sql) {
      check(PQprepare(db.get(), name, sql, 0, nullptr));
    };
    prepare("begin", "BEGIN");
    prepare("update",
            "UPDATE instance SET state = 'charging', version = version + 1, data = $2 WHERE key = $1");
    prepare("insert", "INSERT INTO event(key, event, payload) VALUES($1, 'Reading', $2)");
    prepare("commit", "COMMIT");
    pawl::Random random(seed + 1);
    while (!stop) {
      const auto key = key_of(random.below(kInstances));
      const auto run = [&](const char* name, std::vector<const char*> values) {
        check(PQexecPrepared(db.get(), name, static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                             0));
      };
      run("begin", {});
      run("update", {key.c_str(), data_.c_str()});
      run("insert", {key.c_str(), event_.c_str()});
      run("commit", {});
      ++done;
    }
  }

  const Server& server_;
  std::string data_ = pawl::encode(Session{.watt_hours = 1'234'567, .cents = 41'152, .readings = 27}).value();
  std::string event_ = pawl::encode(Reading{.watt_hours = 45'000, .cents = 1'500}).value();
};

void create_instances(pawl::Engine& engine) {
  if (const auto failed = create_meters(engine, kInstances)) give_up(failed->to_string());
}

Measured drive_engine(pawl::Engine& engine, LoadOptions options) {
  auto measured = drive_meters(engine, options, [](pawl::Random& dice) { return dice.below(kInstances); });
  if (measured.failed) give_up("a transition was refused");
  return measured;
}

/// The obvious way and the engine, one right after the other.
struct Round {
  double baseline = 0;
  Measured pawl;
  double ratio() const { return pawl.per_second / baseline; }
};

/// Several short rounds; that with the median ratio counts. What else the machine does disturbs a round as a
/// whole, and not all of them.
Round measure(Obvious& obvious, pawl::Engine& engine, LoadOptions options) {
  std::array<Round, 5> rounds;
  options.length /= 2;
  for (auto& round : rounds) {
    round.baseline = obvious.run(options.length);
    round.pawl = drive_engine(engine, options);
  }
  std::ranges::sort(rounds, {}, &Round::ratio);
  return rounds[rounds.size() / 2];
}

/// Transactions per second of PostgreSQL's own benchmark, on as many connections.
double tpcb(const Server& server, Seconds length) {
  const auto program = *pawl::test::postgres_programs() + "/pgbench";
  const auto seconds = std::to_string(std::max(1, static_cast<int>(length.count())));
  const std::vector<std::string> where{"-h", server.directory().string(), "-U", "postgres", "postgres"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    arguments.insert(arguments.end(), where.begin(), where.end());
    return arguments;
  };
  pawl::test::run_program(with({"-i", "-q", "-s", "16"}));
  const auto output = pawl::test::run_program(
      with({"-c", std::to_string(kConnections), "-j", "2", "-T", seconds, "-M", "prepared"}));
  const auto at = output.find("tps = ");
  return at == std::string::npos ? 0 : std::strtod(output.c_str() + at + 6, nullptr);
}

int run() {
  if (!pawl::test::postgres_programs()) {
    fmt::print(stderr, "postgres_bench: PostgreSQL 15 is not installed\n");
    return EXIT_SUCCESS;
  }
  const char* seconds = std::getenv("PAWL_BENCH_SECONDS");
  const char* directory = std::getenv("PAWL_BENCH_DIR");
  const Seconds length(seconds == nullptr ? 1.5 : std::strtod(seconds, nullptr));
  Server server(pawl::test::Settings{{"shared_buffers", "128MB"}}, directory == nullptr ? "." : directory);
  Obvious obvious(server);
  pawl::ThreadRuntime runtime;
  auto engine = pawl::Engine::open(runtime, pawl::Machines().add<meter>(), {.store = server.url("postgres")});
  if (!engine) give_up(engine.error().to_string());
  create_instances(**engine);
  double baseline = 0;
  for (const auto outstanding : kOutstanding) {
    const auto name = fmt::format("pg.transitions.10k.uniform.{}", outstanding);
    if (!is_wanted(name)) continue;
    const auto median = measure(obvious, **engine, {.outstanding = outstanding, .length = length});
    baseline = median.baseline;
    report(name, median.pawl.per_second, "1/s", baseline);
    report(name + ".p50", median.pawl.p50_us, "us", kConnections / baseline * 1e6);
  }
  engine->reset();
  if (!is_wanted("pg.pgbench.tpcb.16")) return EXIT_SUCCESS;
  report("pg.pgbench.tpcb.16", tpcb(server, length), "1/s", baseline);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace bench

int main() { return bench::run(); }
