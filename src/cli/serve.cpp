// SPDX-License-Identifier: Apache-2.0
// pawl serve and pawl config.
#include "server/serve.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/systems.hpp"
#include "server/config.hpp"

namespace pawl::cli {
namespace {

constexpr const char* kDefaultFile = "pawl.yaml";

struct ServeArguments {
  std::string file;
  std::optional<std::string> listen;
  std::optional<std::string> data;
  bool demo = false;
};

/// The command line takes precedence over the file.
Result<server::Config> read_config(const ServeArguments& arguments, const server::Systems& systems) {
  server::Config config;
  if (!arguments.file.empty() || std::filesystem::exists(kDefaultFile)) {
    PAWL_TRY(config, server::load_config(arguments.file.empty() ? kDefaultFile : arguments.file, systems));
  }
  if (arguments.listen) config.given["listen"] = config.server.listen = *arguments.listen;
  if (arguments.data) config.given["data"] = config.data = *arguments.data;
  if (arguments.demo) config.given["demo"] = "true";
  config.demo = config.demo || arguments.demo;
  return config;
}

int run_server(const ServeArguments& arguments) {
  const auto systems = built_in_systems();
  const auto config = read_config(arguments, systems);
  if (!config) return report(config.error());
  // A reloaded configuration must not change settings of running systems.
  const auto served =
      server::serve(*config, systems, [&arguments] { return read_config(arguments, built_in_systems()); });
  return served ? kOk : report(served.error());
}

int check_config(const std::string& file) {
  const auto systems = built_in_systems();
  const auto config = server::load_config(file, systems);
  if (!config) return report(config.error());
  const auto startable = server::check_config(*config, systems);
  if (!startable) return report(startable.error());
  fmt::print("{} is right\n", printable(file));
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("serve", "Serve machines over HTTP, on a store of its own");
  const auto arguments = std::make_shared<ServeArguments>();
  command->add_option("-c,--config", arguments->file, "the configuration; default: pawl.yaml if it exists");
  command->add_option("--listen", arguments->listen, "address and port, such as 127.0.0.1:7420");
  command->add_option("--data", arguments->data, "directory of the store");
  command->add_flag("--demo", arguments->demo, "run the demo system, which simulates orders");
  command->callback([arguments, &status] { status = run_server(*arguments); });
}

void add_config(CLI::App& app, int& status) {
  auto* noun = app.add_subcommand("config", "Check a configuration, or print the defaults");
  noun->require_subcommand(1);
  const auto file = std::make_shared<std::string>(kDefaultFile);
  auto* check = noun->add_subcommand("check", "Read a configuration and say what is wrong; starts nothing");
  check->add_option("file", *file, "the file")->capture_default_str();
  check->callback([file, &status] { status = check_config(*file); });
  auto* defaults = noun->add_subcommand("default", "Print a configuration with every key and its default");
  defaults->callback([&status] {
    fmt::print("{}", server::default_config(built_in_systems()));
    status = kOk;
  });
}

}  // namespace pawl::cli
