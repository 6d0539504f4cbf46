// SPDX-License-Identifier: Apache-2.0
// Writes a page for each machine, drawn from the table that the program runs.
//
//     pawl_diagrams <folder>            writes <folder>/README.md and <folder>/<machine>.md
//     pawl_diagrams --check <folder>    only reports the pages that differ; 1 if there are any
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/definition.hpp"
#include "tests/seeds/feeds_machine.hpp"
#include "tests/seeds/fleet_machine.hpp"
#include "tests/seeds/images_machine.hpp"
#include "tests/seeds/sentinel_machine.hpp"
#include "tests/seeds/workers_machine.hpp"

namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string sentence;
  pawl::Definition definition;
};

std::vector<Entry> all_machines() {
  using namespace seeds;
  return {
      {"Coordinates the providers of security data from start to shutdown.", pawl::define<feeds::macro>()},
      {"One source of security data: it runs only with permits and waits out rate limits.",
       pawl::define<feeds::provider>()},
      {"The role of one cloud instance among the instances of its agent.", pawl::define<fleet::instance>()},
      {"A supervised worker on its way to what is desired.", pawl::define<workers::worker>()},
      {"The status of one run of an image flow, with a state for each way to end.",
       pawl::define<images::run>()},
      {"What an upstream event is, decided once.", pawl::define<sentinel::event>()},
      {"A vulnerability found upstream, from its analysis to its publication.",
       pawl::define<sentinel::upstream_vuln>()},
      {"How far the analysis has come of what a vulnerability means for a client.",
       pawl::define<sentinel::client_pipeline>()},
      {"How far people have come with a vulnerability that reaches a client.",
       pawl::define<sentinel::client_status>()},
  };
}

/// "Push → open, Knock (stays)": what a state accepts, in the order of the table.
std::string accepted(const pawl::Definition& definition, std::size_t state) {
  std::vector<std::string> parts;
  for (const auto& row : definition.transitions) {
    if (row.from != state) continue;
    const auto target =
        row.internal ? std::string(" (stays)") : fmt::format(" → {}", definition.states[row.to].name);
    parts.push_back(fmt::format("`{}`{}{}", definition.events[row.event].name,
                                row.guarded ? " if its guard agrees" : "", target));
  }
  return parts.empty() ? std::string("nothing") : fmt::format("{}", fmt::join(parts, ", "));
}

std::string page(const Entry& entry) {
  const auto& definition = entry.definition;
  auto text =
      fmt::format("# {}\n\n{}\n\n```mermaid\n{}```\n\n| state | accepts | after a restart |\n|---|---|---|\n",
                  definition.name, entry.sentence, pawl::to_mermaid(definition));
  for (std::size_t i = 0; i < definition.states.size(); ++i) {
    const auto& state = definition.states[i];
    const auto mark = i == definition.initial ? " (initial)" : state.terminal ? " (final)" : "";
    const auto restart =
        state.recovers_to ? definition.states[*state.recovers_to].name : std::string("stays");
    text += fmt::format("| {}{} | {} | {} |\n", state.name, mark, accepted(definition, i), restart);
  }
  return text;
}

/// Every page by its file name.
std::map<std::string, std::string> all_pages() {
  std::map<std::string, std::string> pages;
  std::string index =
      "# Machines\n\nThese pages are written by `pawl_diagrams` from the tables that the tests run.\n\n"
      "| machine | what it is | states | transitions |\n|---|---|---|---|\n";
  for (const auto& entry : all_machines()) {
    const auto& definition = entry.definition;
    index += fmt::format("| [{0}]({0}.md) | {1} | {2} | {3} |\n", definition.name, entry.sentence,
                         definition.states.size(), definition.transitions.size());
    pages[definition.name + ".md"] = page(entry);
  }
  pages["README.md"] = index;
  return pages;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int check(const std::map<std::string, std::string>& pages, const fs::path& folder) {
  int wrong = 0;
  const auto report = [&](const std::string& name, std::string_view what) {
    fmt::print("{}: {}; run pawl_diagrams {}\n", (folder / name).string(), what, folder.string());
    ++wrong;
  };
  for (const auto& [name, text] : pages) {
    if (!fs::exists(folder / name)) {
      report(name, "is missing");
    } else if (read(folder / name) != text) {
      report(name, "differs from its machine");
    }
  }
  if (fs::is_directory(folder)) {
    for (const auto& file : fs::directory_iterator(folder)) {
      const auto name = file.path().filename().string();
      if (!pages.contains(name)) report(name, "belongs to no machine, remove it");
    }
  }
  return wrong == 0 ? 0 : 1;
}

int write(const std::map<std::string, std::string>& pages, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [name, text] : pages) {
    std::ofstream file(folder / name, std::ios::binary);
    file << text;
    file.close();
    if (!file) {
      fmt::print("{}: cannot be written\n", (folder / name).string());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const bool checking = !arguments.empty() && arguments[0] == "--check";
  if (arguments.size() != (checking ? 2U : 1U)) {
    fmt::print("usage: pawl_diagrams [--check] <folder>\n");
    return 2;
  }
  return checking ? check(all_pages(), arguments[1]) : write(all_pages(), arguments[0]);
}
