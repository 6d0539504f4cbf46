// SPDX-License-Identifier: Apache-2.0
// The systems and their verbs.
#include "cli/systems.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/app_parts.hpp"
#include "cli/output.hpp"
#include "images/system.hpp"
#include "server/demo.hpp"
#include "workers/system.hpp"

namespace pawl::cli {
namespace {

/// The values of a verb's options; CLI11 writes them.
struct VerbGiven {
  Verb verb;
  Common common;
  std::map<std::string, std::string> values;
  std::map<std::string, bool> flags;
};

std::string plain_name(const std::string& name) { return name.substr(name.find_first_not_of('-')); }

int run_verb(const VerbGiven& given) {
  VerbCall call{.json = given.common.json};
  for (const auto& [name, value] : given.values) {
    if (!value.empty()) call.arguments.emplace(name, value);
  }
  for (const auto& [name, set] : given.flags) {
    if (set) call.arguments.emplace(name, "true");
  }
  std::optional<Client> client;
  call.ask = [&](http::Method method, std::string target, std::string body) -> Result<std::string> {
    if (!client) {
      PAWL_TRY(auto opened, open_client(given.common.source));
      client.emplace(std::move(opened));
    }
    HttpRequest request{.method = std::string(http::name(method)), .target = std::move(target)};
    if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
    request.body = std::move(body);
    return client->call(std::move(request));
  };
  call.table = [](const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    Table table(head);
    for (const auto& row : rows) table.add({row.begin(), row.end()});
    table.print();
  };
  ProgressBar bar("");
  call.progress = [&](std::string_view label, double fraction, std::string_view text) {
    if (label.empty()) return bar.clear();
    bar.rename(std::string(label));
    bar.show(fraction, text);
  };
  const auto ended = given.verb.run(call);
  bar.clear();
  return ended ? *ended : report(ended.error());
}

void add_system_verb(CLI::App& noun, int& status, Verb verb) {
  const auto given = std::make_shared<VerbGiven>();
  given->verb = std::move(verb);
  auto* command = noun.add_subcommand(given->verb.name, given->verb.summary);
  if (!given->verb.local) {
    add_server_options(*command, given->common);
    add_json(*command, given->common);
  }
  for (const auto& argument : given->verb.arguments) {
    const auto name = plain_name(argument.name);
    if (argument.flag) {
      command->add_flag(argument.name, given->flags[name], argument.description);
    } else {
      command->add_option(argument.name, given->values[name], argument.description)
          ->required(argument.required);
    }
  }
  command->callback([given, &status] { status = run_verb(*given); });
}

}  // namespace

// A new system is one more line here.
server::Systems built_in_systems() {
  server::Systems systems;
  systems.push_back(server::make_demo());
  systems.push_back(images::make_images());
  systems.push_back(workers::make_workers());
  return systems;
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
      // The system lives as long as its verbs.
      verb.run = [system, run = std::move(verb.run)](const VerbCall& call) { return run(call); };
      add_system_verb(*noun, status, std::move(verb));
    }
  }
}

}  // namespace pawl::cli
