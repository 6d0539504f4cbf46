// SPDX-License-Identifier: Apache-2.0
#include "supervise/scope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/utf8.hpp"

namespace pawl::supervise {
namespace {

template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.emplace_back(name);
  return names;
}

/// "IP, PORT and 7 more"
std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    if (i > 0) list += ", ";
    list += shown(names[i]);
  }
  if (names.size() > kMost) list += fmt::format(" and {} more", names.size() - kMost);
  return list;
}

/// No-op unless the value is an object.
void open_members(ScopeNode& node) {
  if (std::exchange(node.opened, true) || node.value.kind() != JsonKind::object) return;
  node.members.reserve(node.value.size());
  for (std::size_t i = 0; i < node.value.size(); ++i)
    node.members.push_back({node.value.key_at(i), node.value.at(i)});
  std::ranges::sort(node.members, {}, &ScopeNode::name);
}

std::string beginning_of(const std::vector<std::string_view>& path, std::size_t count) {
  return joined_path({path.begin(), path.begin() + static_cast<std::ptrdiff_t>(count)});
}

}  // namespace

std::size_t name_length(std::string_view text) noexcept {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  std::size_t length = 0;
  while (length < text.size()) {
    const char c = text[length];
    if (!is_letter(c) && (length == 0 || c < '0' || c > '9')) break;
    ++length;
  }
  return length;
}

Result<JsonDocument> parse_value(const Json& value) {
  return JsonDocument::parse(value.text, {.depth = JsonLimits{}.depth / 2});
}

std::string joined_path(const std::vector<std::string_view>& path) {
  return fmt::format("{}", fmt::join(path, "."));
}

Scope::Scope(const Variables& variables, const InternalVariables& internal)
    : variables_(variables),
      internal_{{"id", internal.id},
                {"parent_id", internal.parent_id},
                {"bridged_by", internal.parent_id},
                {"created_at", to_string(internal.created_at)},
                {"timestamp", to_string(internal.timestamp)}} {}

Result<Scope::Value> Scope::value_of(const Path& path) {
  const bool global = path[0] == "global";
  if (!global && path[0] != "internal") return stored_value(variables_.user, user_, path, 0);
  if (path.size() == 1) {
    return fail(
        Code::template_invalid,
        fmt::format(".{0} holds variables and is none; write {{{{ .{0}.NAME }}}} with one of: {1}", path[0],
                    listed_names(global ? names_of(variables_.global) : names_of(internal_))));
  }
  return global ? stored_value(variables_.global, global_, path, 1) : internal_value(path);
}

Result<Scope::Value> Scope::internal_value(const Path& path) const {
  const auto found = internal_.find(path[1]);
  if (found == internal_.end()) return missing(path, 1, names_of(internal_));
  if (path.size() > 2) return missing(path, 2, {});
  return Value{found->second};
}

Result<Scope::Value> Scope::stored_value(const std::map<std::string, Json>& stored, Roots& roots,
                                         const Path& path, std::size_t at) {
  auto root = roots.find(path[at]);
  if (root == roots.end()) {
    const auto found = stored.find(std::string(path[at]));
    if (found == stored.end()) {
      auto known = names_of(stored);
      if (at == 0) known.insert(known.end(), {"global", "internal"});
      return missing(path, at, known);
    }
    auto document = parse_value(found->second);
    if (!document) {
      const auto key = beginning_of(path, at + 1);
      return fail(Code::spec_invalid,
                  fmt::format("the value of .{} is not JSON: {}", shown(key), document.error().message()),
                  {{"key", key}});
    }
    const auto value = document->root();
    root = roots.emplace(found->first, Root{*std::move(document), {found->first, value}}).first;
  }
  return nested_value(root->second.node, path, at + 1);
}

Result<Scope::Value> Scope::nested_value(ScopeNode& root, const Path& path, std::size_t at) const {
  ScopeNode* node = &root;
  for (; at < path.size(); ++at) {
    open_members(*node);
    const auto found = std::ranges::lower_bound(node->members, path[at], {}, &ScopeNode::name);
    if (found == node->members.end() || found->name != path[at]) {
      std::vector<std::string> known;
      for (const auto& member : node->members) known.emplace_back(member.name);
      return missing(path, at, known);
    }
    node = &*found;
  }
  const auto text = node->value.as_string();
  return text ? Value{std::string(*text)} : Value{node->value.to_text(), false};
}

std::unexpected<Error> Scope::missing(const Path& path, std::size_t at,
                                      const std::vector<std::string>& known) const {
  const auto key = joined_path(path);
  const auto above = beginning_of(path, at);
  std::vector<std::string> usable;
  std::ranges::copy_if(known, std::back_inserter(usable),
                       [](const auto& name) { return name_length(name) == name.size(); });
  auto nearest = at == 0 ? elsewhere(path) : std::string();
  if (nearest.empty()) nearest = nearest_name(path[at], usable);

  std::string message = fmt::format("there is no variable .{}", shown(key));
  if (known.empty()) {
    message += fmt::format(": .{} has no names in it", shown(above));
  } else {
    message +=
        fmt::format("; {}: {}", at == 0 ? "known are" : "in ." + shown(above) + " are", listed_names(known));
  }
  Error error(Code::variable_missing, std::move(message), {{"key", key}, {"known", listed_names(known)}});
  if (nearest.empty()) return fail(std::move(error));
  Path meant = path;
  meant[at] = nearest;
  const auto whole = joined_path(meant);
  return fail(Error(error.code(),
                    fmt::format("{}; did you mean {{{{ .{} }}}}?", error.message(), shown(whole)),
                    error.fields())
                  .with("nearest", whole));
}

std::string Scope::elsewhere(const Path& path) const {
  const std::string name(path[0]);
  if (variables_.global.contains(name)) return "global." + name;
  return internal_.contains(name) ? "internal." + name : std::string();
}

}  // namespace pawl::supervise
