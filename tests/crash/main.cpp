// SPDX-License-Identifier: Apache-2.0
// crash_driver: kills an engine under load with SIGKILL, again and again, and audits from outside that what
// it acknowledged is there exactly once.
//
//     crash_driver --kills 200 --seed 7
//     kills=200 acked=123456 lost=0 doubled=0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/crash/driver.hpp"
#include "tests/crash/worker.hpp"

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

int run_as_driver(DriverOptions options) {
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
  if (!done) fmt::print("{}\n", done.error().to_string());
  for (const auto& problem : report.findings.problems) fmt::print("{}\n", problem);
  const bool sound = done && report.findings.sound();
  if (!sound) {
    fmt::print("seed {} failed; the store is left in {}\n", options.seed, options.directory);
  } else if (own) {
    fs::remove_all(options.directory);
  }
  fmt::print("kills={} acked={} lost={} doubled={}\n", report.kills, report.acknowledged,
             report.findings.lost, report.findings.doubled);
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace pawl::crash

int main(int argc, char** argv) {
  CLI::App app{"Kills an engine under load and audits what it had acknowledged."};
  pawl::crash::DriverOptions driver;
  pawl::crash::WorkerOptions worker;
  std::string broken;
  app.add_option("--kills", driver.kills, "how often to kill")->check(CLI::PositiveNumber);
  app.add_option("--seed", driver.seed, "decides the load and the moments of the kills");
  app.add_option("--dir", driver.directory, "where the store is; by default a temporary directory");
  app.add_option("--broken", broken, "run with a fault that the audit must find")
      ->check(CLI::IsMember({"ack-before-commit"}));
  app.add_option("--worker", worker.directory,
                 "be the process that is killed, on the store in this directory");
  CLI11_PARSE(app, argc, argv);
  driver.acknowledge_before_commit = worker.acknowledge_before_commit = !broken.empty();
  return worker.directory.empty() ? pawl::crash::run_as_driver(driver) : pawl::crash::run_as_worker(worker);
}
