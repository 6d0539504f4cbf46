// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shows documents of the API to people.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "pawl/json.hpp"

namespace pawl::cli {

/// Finished ones are quiet, the others are what is worth looking at.
Style state_style(bool finished);

/// "3m ago" for an RFC 3339 text; empty if it is malformed.
std::string ago(std::string_view time);

/// "2026-11-16T04:33:14Z (3m ago)".
std::string when(std::string_view time);

/// Every (machine, state) of a document of machines, in the order of the machine's table if known.
std::vector<std::pair<std::string, std::string>> states_in_order(JsonValue machines);

/// One instance with its data, timers, work and what it accepts.
void show_instance(JsonValue instance);

/// Compact JSON of a member for a table's last column; empty where it is absent or {}.
std::string compact(JsonValue object, std::string_view name);

/// Prints the document as JSON, or shows it to people.
template <class Show>
int present(const Result<JsonDocument>& document, bool json, Show show) {
  if (!document) return report(document.error());
  if (json) return print_json(document->root().to_text());
  show(document->root());
  return kOk;
}

}  // namespace pawl::cli
