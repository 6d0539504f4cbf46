// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "pawl/assert.hpp"
#include "pawl/definition.hpp"
#include "pawl/json.hpp"

namespace pawl {
namespace {

/// "Push", with a mark where a guard may refuse or the state stays.
std::string label(const Definition& definition, const Definition::Transition& row) {
  return fmt::format("{}{}{}", definition.events[row.event].name, row.guarded ? " [guarded]" : "",
                     row.internal ? " (stays)" : "");
}

/// Diagram ids may hold letters, digits and underscores only; stored names may hold anything.
std::string identifier(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    id += plain ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  return id;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string to_mermaid(const Definition& definition, const std::map<std::string, std::size_t>& counts) {
  std::string out = "stateDiagram-v2\n";
  for (const auto& state : definition.states) {
    const auto id = identifier(state.name);
    const auto count = counts.find(state.name);
    if (count != counts.end()) {
      out += fmt::format("    {}: {} ({})\n", id, state.name, count->second);
    } else if (id != state.name) {
      out += fmt::format("    {}: {}\n", id, state.name);
    }
  }
  out += fmt::format("    [*] --> {}\n", identifier(definition.states[definition.initial].name));
  for (const auto& row : definition.transitions) {
    out += fmt::format("    {} --> {}: {}\n", identifier(definition.states[row.from].name),
                       identifier(definition.states[row.to].name), label(definition, row));
  }
  for (const auto& state : definition.states) {
    if (state.terminal) out += fmt::format("    {} --> [*]\n", identifier(state.name));
  }
  return out;
}

std::string to_dot(const Definition& definition) {
  std::string out =
      fmt::format("digraph \"{}\" {{\n  rankdir=LR;\n  start [shape=point];\n", escaped(definition.name));
  for (const auto& state : definition.states) {
    out += fmt::format("  \"{}\" [shape={}];\n", escaped(state.name),
                       state.terminal ? "doublecircle" : "ellipse");
  }
  out += fmt::format("  start -> \"{}\";\n", escaped(definition.states[definition.initial].name));
  for (const auto& row : definition.transitions) {
    out += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\"];\n", escaped(definition.states[row.from].name),
                       escaped(definition.states[row.to].name), escaped(label(definition, row)));
  }
  return out + "}\n";
}

std::string to_json(const Definition& definition) {
  JsonWriter out;
  out.begin_object();
  out.key("name").string(definition.name);
  out.key("initial").string(definition.states[definition.initial].name);
  out.key("endless").boolean(definition.endless);
  out.key("schema").integer(std::int64_t{definition.schema});
  out.key("states").begin_array();
  for (const auto& state : definition.states) {
    out.begin_object().key("name").string(state.name).key("terminal").boolean(state.terminal);
    if (state.recovers_to) out.key("recovers_to").string(definition.states[*state.recovers_to].name);
    out.end_object();
  }
  out.end_array().key("events").begin_array();
  for (const auto& event : definition.events) out.string(event.name);
  out.end_array().key("transitions").begin_array();
  for (const auto& row : definition.transitions) {
    out.begin_object();
    out.key("from").string(definition.states[row.from].name);
    out.key("event").string(definition.events[row.event].name);
    out.key("to").string(definition.states[row.to].name);
    out.key("guarded").boolean(row.guarded).key("internal").boolean(row.internal);
    out.end_object();
  }
  out.end_array().end_object();
  auto text = out.take();
  PAWL_ASSERT(text.has_value(), "names in a definition are UTF-8");
  return *std::move(text);
}

}  // namespace pawl
