// SPDX-License-Identifier: Apache-2.0
// The `pawl` command.
#include <exception>

#include "cli/commands.hpp"
#include "cli/output.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Durable lifecycles: machines whose every step is durable, legal, recoverable and visible."};
  app.name("pawl");
  app.set_version_flag("--version", "pawl " PAWL_VERSION);
  app.require_subcommand(1);
  int status = pawl::cli::kOk;
  pawl::cli::add_explain(app, status);
  pawl::cli::add_migrate(app, status);
  pawl::cli::add_config(app, status);
  pawl::cli::add_serve(app, status);
  pawl::cli::add_store(app, status);
  pawl::cli::add_systems(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    // Asking for help is no mistake; everything else is one of usage, whatever number CLI11 gives it.
    return app.exit(problem) == 0 ? pawl::cli::kOk : pawl::cli::kUsage;
  }
  return status;
}
