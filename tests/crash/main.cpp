// SPDX-License-Identifier: Apache-2.0
// crash_driver: kills an engine under load with SIGKILL, again and again, and audits from outside that what
// it acknowledged is there exactly once. On PostgreSQL it kills the server, too.
//
//     crash_driver --kills 200 --seed 7
//     kills=200 acked=123456 lost=0 doubled=0
//     crash_driver --store postgres --fault promote --kills 5
//     promotions=5 acked=12345 lost=0 doubled=0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/crash/driver.hpp"
#include "tests/crash/worker.hpp"
#include "tests/support/postgres_server.hpp"

namespace pawl::crash {
namespace {

namespace fs = std::filesystem;

Result<std::string> make_directory() {
  auto name = (fs::temp_directory_path() / "pawl_crash_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return fail(Code::store_io, fmt::format("cannot make the directory {}", name));
  return name;
}

int run_as_worker(const WorkerOptions& options) {
  const auto done = run_worker(options);
  if (done) return 0;
  fmt::print(stderr, "worker: {}\n", done.error().to_string());
  return 1;
}

const char* counted(Fault fault) {
  switch (fault) {
    case Fault::engine:
      break;
    case Fault::server:
      return "server_kills";
    case Fault::promote:
      return "promotions";
    case Fault::stop:
      return "stops";
  }
  return "kills";
}

int finish(const DriverOptions& options, const Result<void>& done, const Report& report) {
  if (!done) fmt::print("{}\n", done.error().to_string());
  for (const auto& problem : report.findings.problems) fmt::print("{}\n", problem);
  const bool sound = done && report.findings.sound();
  if (!sound) fmt::print("seed {} failed\n", options.seed);
  if (!sound && !options.postgres) fmt::print("the store is left in {}\n", options.directory);
  fmt::print("{}={} acked={} lost={} doubled={}\n", counted(options.fault), report.kills, report.acknowledged,
             report.findings.lost, report.findings.doubled);
  return sound ? 0 : 1;
}

/// In a temporary directory that goes with the server.
int run_on_postgres(const DriverOptions& options) {
  if (!test::postgres_programs()) {
    fmt::print(stderr, "PostgreSQL 15 is not installed\n");
    return 2;
  }
  Report report;
  try {
    const auto done = run_driver(options, report);
    return finish(options, done, report);
  } catch (const std::runtime_error& problem) {
    return finish(options, fail(Code::store_io, problem.what()), report);
  }
}

int run_on_sqlite(DriverOptions options) {
  const bool own = options.directory.empty();
  if (own) {
    const auto made = make_directory();
    if (!made) {
      fmt::print(stderr, "{}\n", made.error().to_string());
      return 2;
    }
    options.directory = *made;
  } else if (fs::exists(options.directory + "/pawl.db")) {
    fmt::print(stderr, "{} holds a store already; give a new or an empty directory\n", options.directory);
    return 2;
  } else {
    fs::create_directories(options.directory);
  }
  Report report;
  const auto done = run_driver(options, report);
  const int status = finish(options, done, report);
  if (status == 0 && own) fs::remove_all(options.directory);
  return status;
}

}  // namespace
}  // namespace pawl::crash

int main(int argc, char** argv) {
  using pawl::crash::Fault;
  CLI::App app{"Kills an engine under load and audits what it had acknowledged."};
  pawl::crash::DriverOptions driver;
  pawl::crash::WorkerOptions worker;
  std::string broken;
  std::string store = "sqlite";
  const std::map<std::string, Fault> faults{{"engine", Fault::engine},
                                            {"server", Fault::server},
                                            {"promote", Fault::promote},
                                            {"stop", Fault::stop}};
  app.add_option("--kills", driver.kills, "how often to kill, promote or stop")->check(CLI::PositiveNumber);
  app.add_option("--seed", driver.seed, "decides the load and the moments of the kills");
  app.add_option("--store", store, "sqlite, or postgres: on a server of its own")
      ->check(CLI::IsMember({"sqlite", "postgres"}));
  app.add_option("--fault", driver.fault, "what goes wrong; all but the engine needs --store postgres")
      ->transform(CLI::CheckedTransformer(faults));
  app.add_option("--dir", driver.directory, "where the SQLite store is; by default a temporary directory");
  app.add_option("--broken", broken, "run with a fault that the audit must find")
      ->check(CLI::IsMember({"ack-before-commit"}));
  app.add_option("--worker", worker.store, "be the process that is killed, on this store");
  app.add_flag("--take-over", worker.take_over, "as a worker: take the store from an owner that lives");
  CLI11_PARSE(app, argc, argv);
  driver.postgres = store == "postgres";
  driver.acknowledge_before_commit = worker.acknowledge_before_commit = !broken.empty();
  worker.directory = driver.directory;
  if (!worker.store.empty()) return pawl::crash::run_as_worker(worker);
  if (driver.postgres) return pawl::crash::run_on_postgres(driver);
  if (driver.fault == Fault::engine) return pawl::crash::run_on_sqlite(driver);
  fmt::print(stderr, "a SQLite store has no server and no second owner; say --store postgres\n");
  return 2;
}
