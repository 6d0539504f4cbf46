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
#include "server/config.hpp"
#include "server/demo.hpp"

namespace pawl::cli {
namespace {

constexpr const char* kDefaultFile = "pawl.yaml";

struct ServeArguments {
  std::string file;
  std::optional<std::string> listen;
  std::optional<std::string> data;
  bool demo = false;
};

/// What is given on the command line comes before what the file says.
Result<server::Config> read_config(const ServeArguments& arguments) {
  server::Config config;
  if (!arguments.file.empty() || std::filesystem::exists(kDefaultFile)) {
    PAWL_TRY(config, server::load_config(arguments.file.empty() ? kDefaultFile : arguments.file));
  }
  if (arguments.listen) config.server.listen = *arguments.listen;
  if (arguments.data) config.data = *arguments.data;
  config.demo = config.demo || arguments.demo;
  return config;
}

/// Every system that this command knows; a new one is one more line.
std::vector<std::unique_ptr<System>> built_in_systems() {
  std::vector<std::unique_ptr<System>> systems;
  systems.push_back(server::make_demo());
  return systems;
}

int run_server(const ServeArguments& arguments) {
  const auto config = read_config(arguments);
  if (!config) return report(config.error());
  const auto served =
      server::serve(*config, built_in_systems(), [&arguments] { return read_config(arguments); });
  return served ? kOk : report(served.error());
}

int check_config(const std::string& file) {
  const auto config = server::load_config(file);
  if (!config) return report(config.error());
  fmt::print("{} is right\n", printable(file));
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("serve", "Serve machines over HTTP, on a store of its own");
  const auto arguments = std::make_shared<ServeArguments>();
  command->add_option("-c,--config", arguments->file,
                      "the configuration; default: pawl.yaml if there is one");
  command->add_option("--listen", arguments->listen, "address and port, such as 127.0.0.1:7420");
  command->add_option("--data", arguments->data, "directory of the store");
  command->add_flag("--demo", arguments->demo, "run the demo, which moves orders by itself");
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
    fmt::print("{}", server::default_config());
    status = kOk;
  });
}

void add_systems(CLI::App& app, int& status) {
  for (auto& made : built_in_systems()) {
    const std::shared_ptr<System> system = std::move(made);
    auto verbs = system->verbs();
    if (verbs.empty()) continue;
    auto* noun =
        app.add_subcommand(system->name(), "The system " + system->name() + ": " + system->summary());
    noun->require_subcommand(1);
    for (auto& verb : verbs) {
      auto* command = noun->add_subcommand(verb.name, verb.summary);
      const auto arguments = std::make_shared<std::vector<std::string>>();
      command->add_option("arguments", *arguments, "what the verb is given");
      command->callback(
          [system, arguments, run = std::move(verb.run), &status] { status = run(*arguments); });
    }
  }
}

}  // namespace pawl::cli
