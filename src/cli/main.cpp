// SPDX-License-Identifier: Apache-2.0
// The `pawl` command.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace {

using namespace pawl::cli;

int wrong_usage(const std::string& text) {
  fmt::print(stderr, "pawl: {}\n", text);
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app{"Durable lifecycles: machines whose every step is durable, legal, recoverable and visible."};
  app.name("pawl");
  app.set_version_flag("--version", "pawl " PAWL_VERSION);
  app.require_subcommand(1);
  int status = kOk;
  add_reading(app, status);
  add_changing(app, status);
  add_runs(app, status);
  add_access(app, status);
  add_store(app, status);
  add_migrate(app, status);
  add_serve(app, status);
  add_config(app, status);
  add_systems(app, status);
  add_explain(app, status);
  add_manual(app, status);
  if (const auto problem = unknown_verb(app, argc, argv); !problem.empty()) return wrong_usage(problem);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return wrong_usage(unknown_option(app));
  } catch (const CLI::ParseError& problem) {
    // Help exits with 0, everything else with the code for wrong usage, whatever CLI11 returns.
    if (problem.get_exit_code() == 0) return app.exit(problem);
    return wrong_usage(fmt::format("{}; see `{} --help`", printable(problem.what()), verb_path(app)));
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc, argv);
  // A full disk behind standard output must not look like success.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "pawl: cannot write to standard output\n");
  return status == kOk ? kFailed : status;
}
