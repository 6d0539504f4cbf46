// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "kernel/suggestion.hpp"

namespace pawl::cli {
namespace {

/// CLI11 shows the members of a set as part of the type: "TEXT:{mermaid,dot,json}".
std::vector<std::string> choices_in(const std::string& type) {
  std::vector<std::string> choices;
  const auto open = type.find('{');
  const auto close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  auto rest = std::string_view(type).substr(open + 1, close - open - 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find(','), rest.size());
    choices.emplace_back(rest.substr(0, end));
    rest = rest.substr(std::min(end + 1, rest.size()));
  }
  return choices;
}

CommandOption describe_option(const CLI::Option& option) {
  CommandOption made{.description = option.get_description(),
                     .positional = option.get_positional(),
                     .required = option.get_required(),
                     .many = option.get_items_expected_max() > 1};
  if (made.positional) made.names.push_back(option.get_name(true));
  for (const auto& name : option.get_snames()) made.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) made.names.push_back("--" + name);
  const auto type = option.get_type_name();
  made.choices = choices_in(type);
  if (option.get_items_expected_max() > 0) made.value = type.substr(0, type.find(':'));
  return made;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& verbs) {
  std::vector<std::string> names;
  for (const auto* verb : verbs) names.push_back(verb->get_name());
  return names;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

}  // namespace

Command describe(const CLI::App& app) {
  Command made{.name = app.get_name(), .description = app.get_description()};
  for (const auto* option : app.get_options()) made.options.push_back(describe_option(*option));
  for (const auto* verb : verbs_of(app)) made.verbs.push_back(describe(*verb));
  return made;
}

std::string unknown_verb(const CLI::App& app, int argc, const char* const* argv) {
  const auto* at = &app;
  std::string path = app.get_name();
  for (int i = 1; i < argc && at->get_require_subcommand_min() > 0; ++i) {
    const std::string word = argv[i];
    if (word.starts_with('-')) return {};
    const auto verbs = verbs_of(*at);
    const auto found = std::ranges::find(verbs, word, [](const CLI::App* verb) { return verb->get_name(); });
    if (found == verbs.end()) {
      return fmt::format("`{}` has no verb \"{}\"{}; `{} --help` lists them", path,
                         printable(word.substr(0, 64)), suggestion(word, names_of(verbs)), path);
    }
    at = *found;
    path += " " + at->get_name();
  }
  return {};
}

std::string verb_path(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app.get_name() : app.get_name() + " " + verb_path(*given.front());
}

std::string unknown_option(const CLI::App& app) {
  const auto* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  const auto path = verb_path(app);
  const auto left = app.remaining(true);
  if (left.empty()) return {};
  const auto word = left.front().substr(0, left.front().find('='));
  if (!word.starts_with("--")) {
    return fmt::format("`{}` does not take \"{}\"; `{} --help` says what it takes", path,
                       printable(word.substr(0, 64)), path);
  }
  std::vector<std::string> known;
  for (const auto* option : at->get_options()) {
    for (const auto& name : option->get_lnames()) known.push_back("--" + name);
  }
  return fmt::format("`{}` has no option {}{}; `{} --help` lists them", path, printable(word.substr(0, 64)),
                     suggestion(word, known), path);
}

void add_manual(CLI::App& app, int& status) {
  const auto shell = std::make_shared<std::string>();
  auto* completing = app.add_subcommand("completion", "Print what lets a shell complete this command");
  completing->add_option("shell", *shell, "the shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completing->callback([shell, &app, &status] {
    const auto text = completion(describe(app), *shell);
    if (text) fmt::print("{}", *text);
    status = text ? kOk : report(text.error());
  });
  auto* page = app.add_subcommand("man", "Print the manual page: pawl man | man -l -");
  page->callback([&app, &status] {
    fmt::print("{}", manual(describe(app), PAWL_VERSION));
    status = kOk;
  });
}

}  // namespace pawl::cli
