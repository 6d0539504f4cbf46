// SPDX-License-Identifier: Apache-2.0
#include "workers/partial_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "pawl/json.hpp"
#include "supervise/marked.hpp"
#include "workers/config/nested.hpp"
#include "workers/config/shape.hpp"
#include "workers/config/tree.hpp"
#include "workers/config/yaml.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

constexpr std::string_view kChildren = "children[";

/// The index of the child that contains the mistake.
std::optional<std::size_t> child_of(const ConfigProblem& problem) {
  std::string_view key = problem.key;
  if (key.starts_with("$.")) key.remove_prefix(2);
  if (!key.starts_with(kChildren)) return std::nullopt;
  key.remove_prefix(kChildren.size());
  std::size_t index = 0;
  const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (failed != std::errc{} || end == key.data() + key.size() || *end != ']') return std::nullopt;
  return index;
}

/// The file without some of its children, as JSON, which is valid YAML.
Result<std::string> without(const JsonValue& root, const std::set<std::size_t>& left_out) {
  JsonWriter out;
  out.begin_object();
  for (std::size_t i = 0; i < root.size(); ++i) {
    out.key(root.key_at(i));
    if (root.key_at(i) != "children") {
      out.embed(root.at(i).to_text());
      continue;
    }
    out.begin_array();
    for (std::size_t child = 0; child < root.at(i).size(); ++child) {
      if (!left_out.contains(child)) out.embed(root.at(i).at(child).to_text());
    }
    out.end_array();
  }
  out.end_object();
  return out.take();
}

/// The value at a path such as "$.topics[0].qos".
std::optional<JsonValue> find_value(JsonValue value, std::string_view path) {
  path.remove_prefix(path.starts_with('$') ? 1 : 0);
  while (!path.empty()) {
    const bool is_index = path.front() == '[';
    path.remove_prefix(1);
    const auto name = path.substr(0, path.find_first_of(is_index ? "]" : ".["));
    path.remove_prefix(std::min(name.size() + (is_index ? 1 : 0), path.size()));
    std::optional<JsonValue> next;
    if (is_index && value.kind() == JsonKind::array) {
      std::size_t index = value.size();
      std::from_chars(name.data(), name.data() + name.size(), index);
      if (index < value.size()) next = value.at(index);
    } else if (!is_index && value.kind() == JsonKind::object) {
      next = value.find(name);
    }
    if (!next) return std::nullopt;
    value = *next;
  }
  return value;
}

/// Reads the configurations of workers with their types.
class ConfigCheck {
 public:
  ConfigCheck(const YamlDocument& yaml, std::string_view file, const WorkerTypes& types)
      : yaml_(yaml), file_(file), types_(types) {}

  /// The mistakes of one child, which is at that path in the file, and of its children.
  std::vector<ConfigProblem> check(const Variables& around, const ChildSpec& child,
                                   const std::string& place) {
    const auto type = types_.find(child.worker_type);
    const auto nested = children_of_config(child.user_spec.config);
    // Reading the tree has made this configuration, so it is valid if the children are.
    if (!nested || !type || !takes_children(**type)) return check_one(around, child, place);
    std::vector<ConfigProblem> found;
    const auto variables = inherit(around, child.user_spec.variables);
    for (std::size_t i = 0; i < nested->size(); ++i) {
      const auto more = check(variables, (*nested)[i], element_path(member_path(place, kChildrenKey), i));
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

 private:
  std::vector<ConfigProblem> check_one(const Variables& around, const ChildSpec& child,
                                       const std::string& place) {
    found_.clear();
    inside_ = nullptr;
    place_ = place + ".userSpec.config";
    const auto type = types_.find(child.worker_type);
    const supervise::MarkedTemplate config(child.user_spec.config, inherit(around, child.user_spec.variables),
                                           {.id = child.name});
    // Reading the tree has reported these errors.
    if (!type || config.mistake() || config.text().find_first_not_of(" \t\r\n") == std::string::npos)
      return found_;
    const auto document = config.fill(read_yaml(config.text()), (*type)->templates);
    if (!document && document.error().code() != Code::config_invalid) return found_;
    if (!document) {
      add({.key = std::string(document.error().field("key")),
           .problem = document.error().message(),
           .expected = "YAML"},
          line_from(document.error()));
      return found_;
    }
    inside_ = &*document;
    check_keys(**type, *document);
    if (const auto derived = (*type)->derive(document->json); !derived && found_.empty()) {
      add_refusal((*type)->name, derived.error(), *document);
    }
    inside_ = nullptr;  // `document` is local
    return found_;
  }

  static std::optional<int> line_from(const Error& error) {
    int line = 0;
    const auto text = error.field("line");
    std::from_chars(text.data(), text.data() + text.size(), line);
    return line > 0 ? std::optional(line) : std::nullopt;
  }

  /// The line of the file with this value of the configuration.
  int line_of(std::string_view path, std::optional<int> line) const {
    if (const auto block = yaml_.block_lines.find(place_); block != yaml_.block_lines.end()) {
      if (!line && inside_ != nullptr) {
        if (const auto known = inside_->lines.find(path); known != inside_->lines.end()) line = known->second;
      }
      return block->second + line.value_or(1) - 1;
    }
    const auto& lines = yaml_.document.lines;
    const auto within = lines.find(place_ + std::string(path.empty() ? path : path.substr(1)));
    if (within != lines.end()) return within->second;
    const auto whole = lines.find(place_);
    return whole == lines.end() ? 1 : whole->second;
  }

  /// `problem.key` is a path in the configuration.
  void add(ConfigProblem problem, std::optional<int> line = std::nullopt) {
    const std::string_view path = problem.key;
    problem.file = file_;
    problem.line = line_of(path, line);
    problem.key = place_.substr(2) + std::string(path.starts_with('$') ? path.substr(1) : path);
    found_.push_back(std::move(problem));
  }

  /// The type's error for a value, such as "$.rpm: expected integer, got string".
  void add_refusal(std::string_view type, const Error& error, const ConfigDocument& document) {
    constexpr std::string_view kExpected = "expected ";
    std::string path(error.field("path"));
    if (path.empty()) path = error.field("field").empty() ? "$" : fmt::format("$.{}", error.field("field"));
    ConfigProblem problem{.key = path, .problem = error.message(), .expected = "a valid value"};
    const auto json = JsonDocument::parse(document.json);
    if (const auto value = json ? find_value(json->root(), path) : std::nullopt) {
      problem.actual = describe_value(*value);
    } else {
      problem.actual = "nothing";
    }
    std::string_view text = error.message();
    if (const auto at = text.find(kExpected); at != std::string_view::npos) {
      text.remove_prefix(at + kExpected.size());
      problem.problem = fmt::format("this value is not valid for a {}", type);
      problem.expected = text.substr(0, text.find(", got "));
    } else if (error.code() == Code::missing_field) {
      problem.problem = fmt::format("a {} needs this key", type);
      problem.expected = "a value for it";
    }
    add(std::move(problem));
  }

  void check_keys(const WorkerType& type, const ConfigDocument& document) {
    const auto json = JsonDocument::parse(document.json);
    if (!json) return;
    const auto root = json->root();
    if (root.kind() != JsonKind::object) return;
    for (std::size_t i = 0; i < root.size(); ++i) {
      const auto name = root.key_at(i);
      if (std::ranges::find(type.fields, name) != type.fields.end()) continue;
      add({.key = member_path("$", name),
           .problem = fmt::format("a {} has no such key", type.name),
           .expected = type.fields.empty() ? "no keys" : fmt::format("one of {}", list_names(type.fields)),
           .actual = fmt::format("\"{}\"", as_utf8(name.substr(0, YamlLimits::kKeyBytes))),
           .suggestion = nearest_name(name, type.fields)});
    }
  }

  const YamlDocument& yaml_;
  std::string_view file_;
  const WorkerTypes& types_;
  std::string place_{};
  const ConfigDocument* inside_ = nullptr;
  std::vector<ConfigProblem> found_{};
};

/// Adds the present specifications of children with mistakes. Children of types that this program does not
/// have are left out: the supervisor would refuse the whole tree, and does not touch them anyway.
void keep_present(TreeSpec& tree, const JsonValue& root, const std::set<std::size_t>& bad,
                  const TreeSpec& now, const WorkerTypes& types, const std::vector<ConfigProblem>& problems) {
  std::set<std::string, std::less<>> names;
  for (const auto& child : tree.children) names.insert(child.name);
  std::set<std::string, std::less<>> kept;
  bool nameless = false;
  const auto children = root.find("children");
  for (const auto index : bad) {
    const auto child = children->at(index);
    const auto name = child.kind() == JsonKind::object ? child.find("name") : std::nullopt;
    const auto text = name ? name->as_string() : std::nullopt;
    const bool known = text && std::ranges::find(now.children, *text, &ChildSpec::name) != now.children.end();
    if (known) kept.insert(std::string(*text));
    const bool misnamed = std::ranges::find(problems, fmt::format("children[{}].name", index),
                                            &ConfigProblem::key) != problems.end();
    nameless = nameless || !text || (!known && misnamed);
  }
  for (const auto& child : now.children) {
    // Any child may be the one whose name cannot be read.
    const bool wanted = (nameless || kept.contains(child.name)) && !names.contains(child.name);
    if (wanted && types.find(child.worker_type)) tree.children.push_back(child);
  }
}

}  // namespace

PartialTree read_partial_tree(std::string_view text, std::string_view file, const WorkerTypes& types,
                              const TreeSpec& now) {
  PartialTree part{.problems = check_tree(text, file, &types)};
  std::set<std::size_t> bad;
  for (const auto& problem : part.problems) {
    const auto child = child_of(problem);
    if (!child) return part;
    bad.insert(*child);
  }
  const auto yaml = read_yaml_document(text);
  if (!yaml) return part;
  const auto json = JsonDocument::parse(yaml->document.json,
                                        {.depth = YamlLimits::kDepth, .bytes = 8 * YamlLimits::kBytes});
  if (!json) return part;
  const auto rest = without(json->root(), bad);
  auto tree = rest ? read_tree(*rest, file, &types) : Result<TreeSpec>(fail(rest.error()));
  if (!tree) {
    part.problems.push_back({.file = std::string(file), .problem = tree.error().message()});
    return part;
  }
  ConfigCheck configs(*yaml, file, types);
  std::vector<ChildSpec> good;
  std::size_t place = 0;
  for (auto& child : tree->children) {
    while (bad.contains(place)) ++place;
    auto found = configs.check(tree->variables, child, element_path("$.children", place));
    if (found.empty()) {
      good.push_back(std::move(child));
    } else {
      part.problems.insert(part.problems.end(), found.begin(), found.end());
      bad.insert(place);
    }
    ++place;
  }
  tree->children = std::move(good);
  keep_present(*tree, json->root(), bad, now, types, part.problems);
  std::ranges::sort(part.problems, {}, [](const ConfigProblem& problem) {
    return std::tie(problem.line, problem.key, problem.problem);
  });
  part.tree = *std::move(tree);
  return part;
}

}  // namespace pawl::workers
