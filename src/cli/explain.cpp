// SPDX-License-Identifier: Apache-2.0
// pawl explain: what an error code means.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "pawl/error.hpp"

namespace pawl::cli {
namespace {

int explain(const std::string& wanted) {
  const auto codes = all_codes();
  const auto found = std::ranges::find_if(codes, [&](const CodeInfo& entry) {
    const auto number = std::to_string(static_cast<int>(entry.code));
    return wanted == number || wanted == "PAWL-" + number || wanted == entry.name;
  });
  if (found == codes.end()) {
    fmt::print(stderr, "pawl: no error code '{}'; `pawl explain` without a code lists them\n",
               printable(wanted));
    return kUsage;
  }
  fmt::print("PAWL-{} {}\n{}\n", static_cast<int>(found->code), found->name, found->summary);
  return kOk;
}

int list_codes() {
  for (const auto& entry : all_codes()) {
    fmt::print("PAWL-{}  {:<24} {}\n", static_cast<int>(entry.code), entry.name, entry.summary);
  }
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("explain", "Explain an error code (PAWL-1001, 1001 or its name)");
  const auto code = std::make_shared<std::string>();
  command->add_option("code", *code, "the code; default: list all codes");
  command->callback([code, &status] { status = code->empty() ? list_codes() : explain(*code); });
}

}  // namespace pawl::cli
