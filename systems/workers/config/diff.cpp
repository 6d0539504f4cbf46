// SPDX-License-Identifier: Apache-2.0
#include "workers/config/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace pawl::workers {
namespace {

const std::string& text_of_entry(const Json& value) { return value.text; }
const std::string& text_of_entry(const std::string& value) { return value; }

/// Adds the differences between two maps, by name.
template <class Map>
void compare_maps(const Map& before, const Map& after, std::string_view prefix,
                  std::vector<ValueChange>& changes) {
  std::map<std::string, ValueChange> all;
  for (const auto& [name, value] : before) all[name].before = text_of_entry(value);
  for (const auto& [name, value] : after) all[name].after = text_of_entry(value);
  for (auto& [name, change] : all) {
    if (change.before == change.after) continue;
    change.name = std::string(prefix) + name;
    changes.push_back(std::move(change));
  }
}

std::vector<ValueChange> compare_variables(const Variables& before, const Variables& after) {
  std::vector<ValueChange> changes;
  compare_maps(before.user, after.user, "", changes);
  compare_maps(before.global, after.global, "global.", changes);
  return changes;
}

ChildChange compare_children(const ChildSpec& before, const ChildSpec& after) {
  ChildChange change{.name = after.name, .worker_type = after.worker_type};
  if (before.worker_type != after.worker_type) {
    change.type = ValueChange{"workerType", before.worker_type, after.worker_type};
  }
  if (before.enabled != after.enabled) {
    change.enabled =
        ValueChange{"enabled", before.enabled ? "true" : "false", after.enabled ? "true" : "false"};
  }
  if (before.user_spec.config != after.user_spec.config) {
    change.config = diff_lines(before.user_spec.config, after.user_spec.config);
  }
  change.variables = compare_variables(before.user_spec.variables, after.user_spec.variables);
  compare_maps(before.state_mapping, after.state_mapping, "", change.state_mapping);
  return change;
}

/// Escapes control characters, on which a terminal would act.
std::string for_terminal(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (byte < 0x20 || byte == 0x7f) {
      made += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      // U+0080 to U+009F are control characters, too.
      made += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      made += text[i];
    }
  }
  return made;
}

class DiffText {
 public:
  void line(std::size_t indent, std::string_view text) {
    text_ += std::string(indent, ' ');
    text_ += for_terminal(text);
    text_ += '\n';
  }

  void value(std::size_t indent, const ValueChange& change) {
    if (!change.before) return line(indent, fmt::format("+ {}: {}", change.name, *change.after));
    if (!change.after) return line(indent, fmt::format("- {}: {}", change.name, *change.before));
    line(indent, fmt::format("~ {}: {} -> {}", change.name, *change.before, *change.after));
  }

  void values(std::string_view title, const std::vector<ValueChange>& changes) {
    if (changes.empty()) return;
    line(4, title);
    for (const auto& change : changes) value(6, change);
  }

  void lines(const std::vector<LineChange>& changes) {
    constexpr std::size_t kAround = 3;
    std::vector<bool> is_near(changes.size(), false);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (changes[i].kind == LineChange::Kind::same) continue;
      const auto from = i - std::min(i, kAround);
      const auto to = std::min(changes.size(), i + kAround + 1);
      for (auto near = from; near < to; ++near) is_near[near] = true;
    }
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (!is_near[i]) {
        if (i == 0 || is_near[i - 1]) line(6, "...");
        continue;
      }
      const auto& change = changes[i];
      const char sign = change.kind == LineChange::Kind::same      ? ' '
                        : change.kind == LineChange::Kind::removed ? '-'
                                                                   : '+';
      line(6, fmt::format("{}{}{}", sign, change.text.empty() ? "" : " ", change.text));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_{};
};

}  // namespace

TreeDiff diff(const TreeSpec& now, const TreeSpec& wanted) {
  TreeDiff found;
  found.variables = compare_variables(now.variables, wanted.variables);
  std::map<std::string_view, const ChildSpec*> before;
  std::map<std::string_view, const ChildSpec*> after;
  for (const auto& child : now.children) before.emplace(child.name, &child);
  for (const auto& child : wanted.children) after.emplace(child.name, &child);
  for (const auto& child : now.children) {
    if (!after.contains(child.name)) found.removed.push_back(child);
  }
  for (const auto& child : wanted.children) {
    const auto old = before.find(child.name);
    if (old == before.end()) {
      found.added.push_back(child);
      continue;
    }
    auto change = compare_children(*old->second, child);
    if (change != ChildChange{.name = child.name, .worker_type = child.worker_type}) {
      found.changed.push_back(std::move(change));
    }
  }
  return found;
}

std::string to_text(const TreeDiff& diff) {
  DiffText out;
  for (const auto& change : diff.variables) out.value(0, change);
  for (const auto& child : diff.removed) out.line(0, fmt::format("- {} ({})", child.name, child.worker_type));
  for (const auto& child : diff.added) out.line(0, fmt::format("+ {} ({})", child.name, child.worker_type));
  for (const auto& child : diff.changed) {
    out.line(0, fmt::format("~ {} ({})", child.name, child.worker_type));
    if (child.type) out.value(4, *child.type);
    if (child.enabled) out.value(4, *child.enabled);
    if (!child.config.empty()) out.line(4, "config:");
    out.lines(child.config);
    out.values("variables:", child.variables);
    out.values("stateMapping:", child.state_mapping);
  }
  return out.take();
}

}  // namespace pawl::workers
