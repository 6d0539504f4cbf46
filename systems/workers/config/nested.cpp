// SPDX-License-Identifier: Apache-2.0
#include "workers/config/nested.hpp"

#include <algorithm>

#include "pawl/codec.hpp"

namespace pawl::workers {
namespace {

struct Nested {
  std::vector<ChildSpec> children{};
};

}  // namespace

bool takes_children(const WorkerType& type) {
  return std::ranges::find(type.templates, kChildrenKey) != type.templates.end();
}

std::string config_of_children(const std::vector<ChildSpec>& children) {
  auto text = encode(Nested{children}).value_or("{}");
  // Two braces that open stand in a text, where one of them may be escaped; otherwise they would be an
  // expression, with quotes in it that JSON has escaped.
  constexpr std::string_view kBrace = "\\u007b";
  for (auto at = text.find("{{"); at != std::string::npos; at = text.find("{{", at)) {
    text.replace(at, 1, kBrace);
    at += kBrace.size();
  }
  return text;
}

std::optional<std::vector<ChildSpec>> children_of_config(std::string_view config) {
  if (!config.starts_with(R"({"children":)")) return std::nullopt;
  auto nested = decode<Nested>(config);
  if (!nested || config_of_children(nested->children) != config) return std::nullopt;
  return std::move(nested->children);
}

}  // namespace pawl::workers
