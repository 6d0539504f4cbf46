// SPDX-License-Identifier: Apache-2.0
#include "workers/config/nested.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pawl/codec.hpp"

namespace pawl::workers {
namespace {

struct NestedChildren {
  std::vector<NestedChild> children{};
};

Result<std::string> to_config(const NestedChildren& nested) {
  PAWL_TRY(const auto text, encode(nested));
  // "{{" occurs only within texts, where a brace may be escaped. Left alone it would be an expression, with
  // quotes that JSON has escaped.
  constexpr std::string_view kEscapedBrace = "\\u007b";
  std::string made;
  made.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view(text).substr(i, 2) == "{{") {
      made += kEscapedBrace;
    } else {
      made += text[i];
    }
  }
  return made;
}

std::optional<NestedChildren> from_config(std::string_view config) {
  if (!config.starts_with(R"({"children":)")) return std::nullopt;
  auto nested = decode<NestedChildren>(config);
  if (!nested) return std::nullopt;
  const auto made = to_config(*nested);
  if (!made || *made != config) return std::nullopt;
  return *std::move(nested);
}

NestedChild to_nested(const ChildSpec& spec) {
  NestedChild made{.name = spec.name,
                   .worker_type = spec.worker_type,
                   .variables = spec.user_spec.variables,
                   .state_mapping = spec.state_mapping,
                   .enabled = spec.enabled};
  if (auto below = from_config(spec.user_spec.config)) {
    made.children = std::move(below->children);
  } else {
    made.config = spec.user_spec.config;
  }
  return made;
}

}  // namespace

bool takes_children(const WorkerType& type) {
  return std::ranges::find(type.templates, kChildrenKey) != type.templates.end();
}

Result<std::string> config_of_children(const std::vector<ChildSpec>& children) {
  NestedChildren nested;
  for (const auto& child : children) nested.children.push_back(to_nested(child));
  return to_config(nested);
}

std::optional<std::vector<ChildSpec>> children_of_config(std::string_view config) {
  const auto nested = from_config(config);
  auto specs = nested ? to_specs(nested->children) : fail(Code::spec_invalid, "");
  if (!specs) return std::nullopt;
  return *std::move(specs);
}

Result<std::vector<ChildSpec>> to_specs(const std::vector<NestedChild>& children) {
  std::vector<ChildSpec> made;
  for (const auto& child : children) {
    auto config = child.config;
    if (child.children) {
      if (!config.empty()) {
        return fail(Code::spec_invalid,
                    fmt::format("the child \"{}\" has config and children; give one of the two", child.name),
                    {{"field", std::string(kChildrenKey)}});
      }
      PAWL_TRY(config, to_config({*child.children}));
    }
    made.push_back({.name = child.name,
                    .worker_type = child.worker_type,
                    .user_spec = {std::move(config), child.variables},
                    .state_mapping = child.state_mapping,
                    .enabled = child.enabled});
  }
  return made;
}

}  // namespace pawl::workers
