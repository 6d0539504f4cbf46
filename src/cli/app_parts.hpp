// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Helpers for the command lines of verbs.

#include <memory>

#include "cli/commands.hpp"
#include "cli/verbs.hpp"

namespace pawl::cli {

/// A number in a range; the description says which, so the type need not.
template <class Number>
CLI::Validator between(Number least, Number most) {
  CLI::Range range(least, most);
  return range.description("");
}

/// Arguments of a verb; lives as long as the app.
template <class Arguments>
struct Given {
  Common common;
  Arguments own;
};
struct Nothing {};

template <class Arguments>
std::shared_ptr<Given<Arguments>> make_given() {
  return std::make_shared<Given<Arguments>>();
}

void add_server_options(CLI::App& verb, Common& common);
void add_json(CLI::App& verb, Common& common);
CLI::App* add_noun(CLI::App& app, const char* name, const char* text);

template <class Arguments>
CLI::App* add_verb(CLI::App& app, int& status, const char* name, const char* text,
                   const std::shared_ptr<Given<Arguments>>& given,
                   int (*run)(const Common&, const Arguments&)) {
  auto* verb = app.add_subcommand(name, text);
  add_server_options(*verb, given->common);
  add_json(*verb, given->common);
  verb->callback([given, run, &status] { status = run(given->common, given->own); });
  return verb;
}

}  // namespace pawl::cli
