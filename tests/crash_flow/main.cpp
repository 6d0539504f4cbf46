// SPDX-License-Identifier: Apache-2.0
// flow_crash_driver: kills a process that runs flows with SIGKILL, again and again, while their steps write
// to a file outside, and audits from outside that every run that was acknowledged ended, each step in its
// order, each under one request id and each of its attempts once.
//
//     flow_crash_driver --kills 50 --seed 7
//     kills=50 acked=12345 lost=0 doubled=0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/crash_flow/audit.hpp"
#include "tests/crash_flow/worker.hpp"

namespace {

namespace fs = std::filesystem;

int drive(pawl::crash_flow::DriverOptions options) {
  auto name = (fs::temp_directory_path() / "pawl_flow_crash_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    fmt::print(stderr, "cannot make the directory {}\n", name);
    return 2;
  }
  options.directory = name;
  pawl::crash_flow::Report report;
  const auto done = pawl::crash_flow::run_driver(options, report);
  if (!done) fmt::print("{}\n", done.error().to_string());
  for (const auto& problem : report.problems) fmt::print("{}\n", problem);
  const bool sound = done && report.problems.empty();
  fmt::print("kills={} acked={} lost={} doubled={}\n", report.kills, report.acknowledged, report.lost,
             report.doubled);
  if (sound) fs::remove_all(name);
  if (!sound) fmt::print("seed {} failed; the store is left in {}\n", options.seed, name);
  return sound ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Kills a process that runs flows and audits what it had acknowledged."};
  pawl::crash_flow::DriverOptions options;
  std::string worker;
  app.add_option("--kills", options.kills, "how often to kill")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "decides the moments of the kills");
  app.add_option("--worker", worker, "be the process that is killed, in this directory");
  CLI11_PARSE(app, argc, argv);
  if (worker.empty()) return drive(std::move(options));
  const auto done = pawl::crash_flow::run_worker(worker);
  if (!done) fmt::print(stderr, "worker: {}\n", done.error().to_string());
  return done ? 0 : 1;
}
