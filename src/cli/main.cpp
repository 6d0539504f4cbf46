// SPDX-License-Identifier: Apache-2.0
// The `pawl` command.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>

#include "pawl/error.hpp"

namespace {

int explain(const std::string& wanted) {
  const auto codes = pawl::all_codes();
  const auto found = std::ranges::find_if(codes, [&](const pawl::CodeInfo& entry) {
    const auto number = std::to_string(static_cast<int>(entry.code));
    return wanted == number || wanted == "PAWL-" + number || wanted == entry.name;
  });
  if (found == codes.end()) {
    fmt::print(stderr, "pawl: no error code '{}'; `pawl explain` without a code lists them\n", wanted);
    return 2;
  }
  fmt::print("PAWL-{} {}\n{}\n", static_cast<int>(found->code), found->name, found->summary);
  return 0;
}

int list_codes() {
  for (const auto& entry : pawl::all_codes()) {
    fmt::print("PAWL-{}  {:<24} {}\n", static_cast<int>(entry.code), entry.name, entry.summary);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Durable lifecycles: machines whose every step is durable, legal, recoverable and visible."};
  app.name("pawl");
  app.set_version_flag("--version", "pawl " PAWL_VERSION);
  app.require_subcommand(1);

  std::string code;
  int status = 0;
  auto* explain_command =
      app.add_subcommand("explain", "Explain an error code (PAWL-1001, 1001 or its name)");
  explain_command->add_option("code", code, "the code; without it all are listed");
  explain_command->callback([&] { status = code.empty() ? list_codes() : explain(code); });

  CLI11_PARSE(app, argc, argv);
  return status;
}
