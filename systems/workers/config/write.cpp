// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "kernel/utf8.hpp"
#include "pawl/json.hpp"
#include "workers/config/nested.hpp"
#include "workers/config/scalar.hpp"
#include "workers/config/tree.hpp"
#include "workers/config/yaml.hpp"

namespace pawl::workers {
namespace {

std::string with_only_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string made;
  for (const char c : text) {
    if ((c & 0x80) == 0) {
      made += c;
    } else {
      made += "\xef\xbf\xbd";
    }
  }
  return made;
}

/// Double-quoted texts are the same in JSON and YAML.
std::string quoted_text(std::string_view text) {
  JsonWriter out;
  out.string(with_only_utf8(text));
  return out.take().value_or("\"\"");
}

/// Without quotes if it is read as a text anyway.
std::string scalar_text(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool simple = !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  const auto quoted = quoted_text(text);
  JsonWriter read;
  const bool is_text = simple && write_plain_scalar(read, text).empty() && read.take() == quoted;
  return is_text ? std::string(text) : quoted;
}

/// Whether a text block gives the text back byte by byte, whatever reads it. Excludes texts that depend on
/// detection of the indentation or on line ends.
bool fits_block(std::string_view text) {
  if (text.empty() || text.ends_with("\n\n") || !is_utf8(text)) return false;
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; })) {
    return false;
  }
  if (text.front() == ' ' || text.front() == '\n') return false;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    if (!line.empty() && line.find_first_not_of(' ') == std::string_view::npos) return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return true;
}

class YamlWriter {
 public:
  /// `name:`; what follows is nested below it.
  void open(std::string_view name) {
    begin_line();
    text_ += std::string(name) + ":\n";
    indent_ += 2;
  }
  void close() { indent_ -= 2; }

  void entry(std::string_view name, std::string_view value) {
    begin_line();
    text_ += name;
    text_ += ": ";
    text_ += value;
    text_ += '\n';
  }

  /// Begins an entry of a list, up to `close`.
  void item() {
    dash_ = true;
    indent_ += 2;
  }

  void text_entry(std::string_view name, std::string_view value) {
    if (!fits_block(value)) return entry(name, quoted_text(value));
    entry(name, value.ends_with('\n') ? "|" : "|-");
    if (value.ends_with('\n')) value.remove_suffix(1);
    for (bool more = true; more;) {
      const auto line = value.substr(0, value.find('\n'));
      if (!line.empty()) text_ += std::string(indent_ + 2, ' ');
      text_ += line;
      text_ += '\n';
      more = line.size() < value.size();
      value.remove_prefix(std::min(line.size() + 1, value.size()));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void begin_line() {
    text_ += std::string(dash_ ? indent_ - 2 : indent_, ' ');
    if (dash_) text_ += "- ";
    dash_ = false;
  }

  std::string text_{};
  std::size_t indent_ = 0;
  bool dash_ = false;
};

/// On one line, as JSON, which is valid YAML.
std::string json_line(const Json& value) {
  const auto read = JsonDocument::parse(value.text);
  return read ? read->root().to_text() : quoted_text(value.text);
}

void write_variable_group(YamlWriter& out, std::string_view name, const std::map<std::string, Json>& values) {
  if (values.empty()) return;
  out.open(name);
  for (const auto& [key, value] : values) out.entry(scalar_text(key), json_line(value));
  out.close();
}

void write_variables(YamlWriter& out, const Variables& variables) {
  if (variables.user.empty() && variables.global.empty()) return;
  out.open("variables");
  write_variable_group(out, "user", variables.user);
  write_variable_group(out, "global", variables.global);
  out.close();
}

void write_children(YamlWriter& out, const std::vector<ChildSpec>& children);

void write_child(YamlWriter& out, const ChildSpec& child) {
  out.item();
  out.entry("name", scalar_text(child.name));
  out.entry("workerType", scalar_text(child.worker_type));
  if (!child.enabled) out.entry("enabled", "false");
  if (!child.state_mapping.empty()) {
    out.open("stateMapping");
    for (const auto& [parent, wanted] : child.state_mapping) {
      out.entry(scalar_text(parent), scalar_text(wanted));
    }
    out.close();
  }
  const auto& spec = child.user_spec;
  const auto nested = children_of_config(spec.config);
  if ((!spec.config.empty() && !nested) || !spec.variables.user.empty() || !spec.variables.global.empty()) {
    out.open("userSpec");
    if (!spec.config.empty() && !nested) out.text_entry("config", spec.config);
    write_variables(out, spec.variables);
    out.close();
  }
  if (nested) write_children(out, *nested);
  out.close();
}

void write_children(YamlWriter& out, const std::vector<ChildSpec>& children) {
  if (children.empty()) return out.entry(kChildrenKey, "[]");
  out.open(kChildrenKey);
  for (const auto& child : children) write_child(out, child);
  out.close();
}

}  // namespace

std::string write_tree(const TreeSpec& tree) {
  YamlWriter out;
  write_variables(out, tree.variables);
  write_children(out, tree.children);
  return out.take();
}

}  // namespace pawl::workers
