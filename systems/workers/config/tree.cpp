// SPDX-License-Identifier: Apache-2.0
#include "workers/config/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "kernel/utf8.hpp"
#include "supervise/application.hpp"
#include "workers/config/nested.hpp"
#include "workers/config/shape.hpp"
#include "workers/config/template_check.hpp"
#include "workers/config/yaml.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kLongestChildName = 63;

/// The rule of the supervisor, which refuses a whole tree for one invalid name.
bool is_child_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestChildName || name == "." || name == "..") return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

/// Whether a mapping may name states of this phase. Transitional states cannot be requested.
bool is_target(Phase phase) {
  return phase == Phase::stopped || phase == Phase::running || phase == Phase::degraded;
}

const ConfigPart* find_part(const ConfigMembers& members, std::string_view key) {
  const auto found = members.find(key);
  return found == members.end() ? nullptr : &found->second;
}

class TreeReader {
 public:
  TreeReader(const YamlDocument& yaml, std::string_view file, const WorkerTypes* types)
      : yaml_(yaml), problems_(file, yaml.document), checks_types_(types != nullptr) {
    if (types == nullptr) return;
    for (auto& type : types->all()) {
      // The internal top of the tree.
      if (type->name == supervise::Application::kType) continue;
      type_names_.push_back(type->name);
      types_.emplace(type->name, std::move(type));
    }
  }

  TreeSpec read(JsonValue root) {
    const auto members = read_members(problems_, {root, "$"}, {"children", "variables", "location"});
    if (!members) return std::move(tree_);
    if (const auto* part = find_part(*members, "variables")) {
      tree_.variables = read_variables(problems_, *part);
    }
    if (const auto* part = find_part(*members, "location")) {
      location_ = read_location(problems_, *part);
      set_location_path(problems_, *part, location_, tree_.variables);
    }
    const auto* children = find_part(*members, "children");
    if (children == nullptr) {
      problems_.add({.key = "$.children",
                     .problem = "the key is missing or has no value",
                     .expected = "a list of workers; [] for none"});
    } else if (children->value.kind() != JsonKind::array) {
      refuse_value(problems_, *children, "a list of workers, each beginning with `- name: `; [] for none");
    } else {
      tree_.children = read_children(*children, {.variables = tree_.variables, .location = location_});
    }
    return std::move(tree_);
  }

  const std::vector<ConfigProblem>& problems() const { return problems_.found(); }

 private:
  using TypePtr = std::shared_ptr<const WorkerType>;
  using NameLines = std::map<std::string, int, std::less<>>;

  /// The context of a list of children.
  struct Context {
    TypePtr parent = nullptr;  ///< null at the top, or if it is unknown
    bool is_top = true;
    Variables variables{};
    Location location{};
  };

  std::vector<ChildSpec> read_children(const ConfigPart& part, const Context& place) {
    std::vector<ChildSpec> children;
    NameLines names;
    for (std::size_t i = 0; i < part.value.size() && !problems_.is_full(); ++i) {
      auto child = read_child({part.value.at(i), element_path(part.path, i)}, place, names);
      if (child) children.push_back(*std::move(child));
    }
    return children;
  }

  std::optional<ChildSpec> read_child(const ConfigPart& part, const Context& place, NameLines& names) {
    static const std::vector<std::string> kKeys{"name",    "workerType", "userSpec", "stateMapping",
                                                "enabled", "location",   "children"};
    const auto members = read_members(problems_, part, kKeys);
    if (!members) return std::nullopt;
    ChildSpec child;
    child.name = read_name(part, find_part(*members, "name"), names);
    const auto type = read_type(part, find_part(*members, "workerType"), child);
    if (const auto* flag = find_part(*members, "enabled")) {
      const auto value = flag->value.as_boolean();
      if (!value) refuse_value(problems_, *flag, "true or false");
      child.enabled = value.value_or(true);
    }
    if (const auto* mapping = find_part(*members, "stateMapping"))
      read_mapping(*mapping, place, type.get(), child);
    auto inside = Context{.parent = type, .is_top = false, .location = place.location};
    if (const auto* spec = find_part(*members, "userSpec")) {
      read_spec(*spec, *members, place, inside, child);
    } else {
      read_place(*members, inside, child);
    }
    inside.variables = inherit(place.variables, child.user_spec.variables);
    if (const auto* nested = find_part(*members, kChildrenKey)) read_nested(*nested, inside, child);
    return child;
  }

  void read_nested(const ConfigPart& part, const Context& inside, ChildSpec& child) {
    if (inside.parent != nullptr && !takes_children(*inside.parent)) {
      problems_.add({.key = part.path,
                     .problem = fmt::format("a {} does not take the key children", child.worker_type),
                     .expected = "workerType: group, or no such key",
                     .actual = std::string(kChildrenKey)});
    } else if (part.value.kind() != JsonKind::array) {
      refuse_value(problems_, part, "a list of workers, each beginning with `- name: `; [] for none");
    } else if (!child.user_spec.config.empty()) {
      problems_.add({.key = part.path,
                     .problem = "the worker has a configuration and children",
                     .expected = "one of the two: what its children are is its configuration"});
    } else {
      set_children(part, read_children(part, inside), child);
    }
  }

  /// Leaves the configuration empty if it is too large, so that the levels above stay small, too.
  void set_children(const ConfigPart& part, const std::vector<ChildSpec>& children, ChildSpec& child) {
    auto config = config_of_children(children);
    if (!config) {
      problems_.add({.key = part.path, .problem = config.error().message()});
    } else if (config->size() > YamlLimits::kBytes) {
      problems_.add({.key = part.path,
                     .problem = "the children are too large for one configuration",
                     .expected = fmt::format("at most {} bytes as JSON", YamlLimits::kBytes),
                     .actual = fmt::format("{} bytes", config->size()),
                     .suggestion = "several groups with fewer workers, or shorter texts"});
    } else {
      child.user_spec.config = *std::move(config);
    }
  }

  std::string read_name(const ConfigPart& child, const ConfigPart* part, NameLines& names) {
    constexpr std::string_view kExpected = "letters, digits, '_', '-' and '.', at most 63; not . or ..";
    if (part == nullptr) {
      problems_.add({.key = child.path, .problem = "the worker has no name", .expected = "name: pump-1"});
      return {};
    }
    auto name = read_text(problems_, *part, "a name").value_or("");
    if (part->value.kind() != JsonKind::string) return {};
    if (!is_child_name(name)) {
      problems_.add({.key = part->path,
                     .problem = "the name cannot be part of a path",
                     .expected = std::string(kExpected),
                     .actual = fmt::format("\"{}\"", shown(name))});
      return name;
    }
    const int line = problems_.line_of(part->path);
    const auto [first, is_new] = names.emplace(name, line);
    if (!is_new) {
      problems_.add({.key = part->path,
                     .problem = fmt::format("the name \"{}\" is given twice, on line {} and on line {}", name,
                                            first->second, line),
                     .expected = "a name of its own for each worker",
                     .actual = fmt::format("\"{}\"", name)});
    }
    return name;
  }

  /// The type; null if it is unknown.
  TypePtr read_type(const ConfigPart& child, const ConfigPart* part, ChildSpec& spec) {
    if (part == nullptr) {
      problems_.add({.key = child.path,
                     .problem = "the worker has no workerType",
                     .expected = checks_types_ ? expected_types() : "workerType: with the name of a type"});
      return nullptr;
    }
    const auto name = read_text(problems_, *part, "the name of a type");
    if (!name) return nullptr;
    spec.worker_type = *name;
    const auto found = types_.find(*name);
    if (found != types_.end()) return found->second;
    if (checks_types_ || name->empty()) {
      problems_.add({.key = part->path,
                     .problem = "there is no such worker type",
                     .expected = expected_types(),
                     .actual = fmt::format("\"{}\"", shown(*name)),
                     .suggestion = nearest_name(*name, type_names_)});
    }
    return nullptr;
  }

  std::string expected_types() const {
    return type_names_.empty() ? "a type, of which this program has none"
                               : fmt::format("one of {}", list_names(type_names_));
  }

  void read_mapping(const ConfigPart& part, const Context& place, const WorkerType* type, ChildSpec& child) {
    // The top of the tree is stopped or running.
    std::vector<std::string> parent_states{"Stopped", "Running"};
    if (!place.is_top) parent_states.clear();
    if (place.parent != nullptr) {
      for (const auto& state : place.parent->states) parent_states.push_back(state.name);
    }
    for (const auto& [written, value] :
         read_entries(problems_, part, "states of the parent with those of the worker")) {
      const auto found = std::ranges::find_if(
          parent_states, [&](const auto& known) { return detail::same_letters(known, written); });
      const bool is_any = written == ChildSpec::kAnyState || parent_states.empty();
      if (!is_any && found == parent_states.end()) {
        problems_.add({.key = value.path,
                       .problem = "the parent has no such state",
                       .expected = fmt::format("one of {}", list_names(parent_states)),
                       .actual = fmt::format("\"{}\"", shown(written)),
                       .suggestion = nearest_name(written, parent_states)});
        continue;
      }
      const auto& state = is_any ? written : *found;
      const auto target = read_text(problems_, value, "a state of the worker, run or park");
      if (!target) continue;
      if (!child.state_mapping.emplace(state, read_target(value.path, *target, type)).second) {
        problems_.add({.key = value.path,
                       .problem = fmt::format("the state {} is given twice, in other letters", state),
                       .expected = "one of them"});
      }
    }
  }

  /// The target in its canonical spelling.
  std::string read_target(const std::string& path, const std::string& written, const WorkerType* type) {
    std::vector<std::string> targets;
    for (const auto& state : type == nullptr ? std::vector<WorkerType::State>() : type->states) {
      if (!is_target(state.phase)) continue;
      if (detail::same_letters(state.name, written)) return state.name;
      targets.push_back(state.name);
    }
    // Words that the supervisor accepts for every type.
    for (const std::string_view word : {"run", "park"}) {
      if (detail::same_letters(word, written)) return std::string(word);
    }
    if (type == nullptr) return written;
    if (detail::same_letters("running", written)) return "run";
    for (const std::string_view word : {"parked", "stopped"}) {
      if (detail::same_letters(word, written)) return "park";
    }
    targets.insert(targets.end(), {"run", "park"});
    const bool exists = std::ranges::any_of(
        type->states, [&](const auto& state) { return detail::same_letters(state.name, written); });
    problems_.add({.key = path,
                   .problem = exists ? fmt::format("a {} only passes through this state", type->name)
                                     : fmt::format("a {} has no such state", type->name),
                   .expected = fmt::format("one of {}", list_names(targets)),
                   .actual = fmt::format("\"{}\"", shown(written)),
                   .suggestion = exists ? std::string() : nearest_name(written, targets)});
    return written;
  }

  void read_spec(const ConfigPart& part, const ConfigMembers& around, const Context& place, Context& inside,
                 ChildSpec& child) {
    const auto members = read_members(problems_, part, {"config", "variables"});
    if (!members) return;
    if (const auto* variables = find_part(*members, "variables")) {
      child.user_spec.variables = read_variables(problems_, *variables);
    }
    read_place(around, inside, child);
    if (const auto* config = find_part(*members, "config")) read_config(*config, place.variables, child);
  }

  /// The location applies to the children, too.
  void read_place(const ConfigMembers& members, Context& inside, ChildSpec& child) {
    const auto* part = find_part(members, "location");
    if (part == nullptr) return;
    const auto merged = merge(inside.location, read_location(problems_, *part));
    if (!merged) {
      problems_.add({.key = part->path, .problem = merged.error().message()});
      return;
    }
    set_location_path(problems_, *part, *merged, child.user_spec.variables);
    inside.location = *merged;
  }

  void read_config(const ConfigPart& part, const Variables& around, ChildSpec& child) {
    const auto variables = inherit(around, child.user_spec.variables);
    const auto type = types_.find(child.worker_type);
    const auto templates = type == types_.end() ? std::vector<std::string>() : type->second->templates;
    if (part.value.kind() == JsonKind::object) {
      child.user_spec.config = part.value.to_text();
      const auto before = problems_.found().size();
      for (std::size_t i = 0; i < part.value.size(); ++i) {
        const auto key = part.value.key_at(i);
        if (std::ranges::find(templates, key) != templates.end()) continue;
        check_texts({part.value.at(i), member_path(part.path, key)}, variables);
      }
      if (problems_.found().size() > before) return;
      // JSON escapes the quotes within an expression.
      for (const auto& found : check_template(child.user_spec.config, variables, templates)) {
        problems_.add({.key = part.path,
                       .problem = found.problem,
                       .expected = "a text block (config: |) where expressions have quotes",
                       .actual = "a mapping"});
      }
      return;
    }
    const auto text = part.value.as_string();
    if (!text) return refuse_value(problems_, part, "a text block (config: |) or a mapping");
    child.user_spec.config = *text;
    check_text(part, variables, templates);
  }

  /// Every text in a mapping may be a template.
  void check_texts(const ConfigPart& part, const Variables& variables) {
    if (part.value.kind() == JsonKind::string) return check_text(part, variables, {});
    const bool is_map = part.value.kind() == JsonKind::object;
    for (std::size_t i = 0; i < part.value.size() && !problems_.is_full(); ++i) {
      check_texts({part.value.at(i),
                   is_map ? member_path(part.path, part.value.key_at(i)) : element_path(part.path, i)},
                  variables);
    }
  }

  void check_text(const ConfigPart& part, const Variables& variables,
                  const std::vector<std::string>& templates) {
    const auto block = yaml_.block_lines.find(part.path);
    for (const auto& found : check_template(*part.value.as_string(), variables, templates)) {
      // The lines of quoted and folded texts are not the lines of the file.
      const int line =
          block == yaml_.block_lines.end() ? problems_.line_of(part.path) : block->second + found.line - 1;
      problems_.add_on_line(line, {.key = part.path,
                                   .problem = found.problem,
                                   .expected = found.expected,
                                   .actual = found.actual,
                                   .suggestion = found.suggestion});
    }
  }

  const YamlDocument& yaml_;
  ConfigProblems problems_;
  bool checks_types_;
  std::map<std::string, std::shared_ptr<const WorkerType>, std::less<>> types_{};
  std::vector<std::string> type_names_{};
  TreeSpec tree_{};
  Location location_{};
};

struct ReadTree {
  TreeSpec tree{};
  std::vector<ConfigProblem> problems{};
};

ReadTree read_and_check(std::string_view text, std::string_view file, const WorkerTypes* types) {
  const auto refuse = [&](const Error& error) {
    int line = 1;
    const auto number = error.field("line");
    std::from_chars(number.data(), number.data() + number.size(), line);
    return ReadTree{.problems = {{.file = std::string(file),
                                  .line = line,
                                  .key = std::string(error.field("key")),
                                  .problem = error.message()}}};
  };
  const auto yaml = read_yaml_document(text);
  if (!yaml) return refuse(yaml.error());
  // JSON may be longer than its YAML, because of quotes and escapes.
  const auto json = JsonDocument::parse(yaml->document.json,
                                        {.depth = YamlLimits::kDepth, .bytes = 8 * YamlLimits::kBytes});
  if (!json) return refuse(json.error());
  TreeReader reader(*yaml, file, types);
  auto tree = reader.read(json->root());
  // Stable for problems on the same line.
  std::multimap<int, ConfigProblem> by_line;
  for (const auto& problem : reader.problems()) by_line.emplace(problem.line, problem);
  ReadTree result{.tree = std::move(tree)};
  for (auto& [line, problem] : by_line) result.problems.push_back(std::move(problem));
  return result;
}

}  // namespace

Result<TreeSpec> read_tree(std::string_view text, std::string_view file, const WorkerTypes* types) {
  auto read = read_and_check(text, file, types);
  if (!read.problems.empty()) return fail(to_error(read.problems));
  return std::move(read.tree);
}

std::vector<ConfigProblem> check_tree(std::string_view text, std::string_view file,
                                      const WorkerTypes* types) {
  return read_and_check(text, file, types).problems;
}

}  // namespace pawl::workers
