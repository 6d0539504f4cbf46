// SPDX-License-Identifier: Apache-2.0
#include "workers/config/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "kernel/utf8.hpp"
#include "pawl/json.hpp"
#include "workers/config/scalar.hpp"

namespace pawl::workers {
namespace {

/// Limits the memory for the paths of all values, which a malicious file could make large.
constexpr std::size_t kMostPathBytes = std::size_t{64} << 20;

constexpr std::string_view kNoAliases =
    "anchors (&name) and aliases (*name) are not read; write the value out, or put a text that begins with & "
    "or * in quotes";

constexpr std::string_view kTab = "there is a tab in the indentation; indent with spaces";
constexpr std::string_view kUnclosed =
    "a text in quotes is not closed; end it with the quote that it begins with";

/// Whether a quoted text begins here and is not closed, which the parser accepts.
bool is_unclosed(std::string_view text, std::size_t at) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return false;
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      const bool doubled = quote == '\'' && at + 1 < text.size() && text[at + 1] == quote;
      if (!doubled) return false;
      ++at;
    }
  }
  return true;
}

Error yaml_error(int line, int column, std::string_view path, std::string message) {
  std::string key(path.starts_with("$.") ? path.substr(2) : std::string_view());
  return {Code::config_invalid,
          std::move(message),
          {{"line", std::to_string(line)}, {"column", std::to_string(column)}, {"key", std::move(key)}}};
}

/// Writes JSON from the parser's events. Keeps the first mistake and ignores all events after it.
class JsonEvents final : public YAML::EventHandler {
 public:
  explicit JsonEvents(std::string_view text) : text_(text) {}

  const std::optional<Error>& mistake() const { return mistake_; }

  Result<YamlDocument> take() {
    if (!has_value_) writer_.null();
    auto json = writer_.take();
    if (!json) return fail(yaml_error(1, 1, {}, json.error().message()));
    read_.document.json = *std::move(json);
    return std::move(read_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(has_document_, true)) {
      refuse(mark, "a second document begins here; a file holds one, so leave `---` out");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    if (is_at_key()) return refuse(mark, "a key is empty; write `name: value`, or \"null\" in quotes");
    if (!begin_value(mark)) return;
    writer_.null();
    end_value();
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, std::string(kNoAliases)); }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    refuse(mark, std::string(kNoAliases));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    const bool plain = tag == "?";
    if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str") return refuse_tag(mark, tag);
    if (is_unclosed(text_, static_cast<std::size_t>(mark.pos))) return refuse(mark, std::string(kUnclosed));
    if (is_at_key()) return take_key(mark, value);
    if (!begin_value(mark)) return;
    const auto wrong = plain ? write_plain_scalar(writer_, unquoted_text(value)) : std::string();
    if (!wrong.empty()) return refuse(mark, wrong);
    if (!plain) writer_.string(value);
    if (const auto at = static_cast<std::size_t>(mark.pos); at < text_.size() && text_[at] == '|') {
      read_.block_lines.emplace(path_, mark.line + 2);
    }
    end_value();
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    if (begin_container(mark, tag, false)) writer_.begin_array();
  }
  void OnSequenceEnd() override {
    if (mistake_) return;
    writer_.end_array();
    end_container();
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    if (begin_container(mark, tag, true)) writer_.begin_object();
  }
  void OnMapEnd() override {
    if (mistake_) return;
    writer_.end_object();
    end_container();
  }

 private:
  struct Level {
    bool is_map = false;
    bool at_key = false;
    std::size_t path_size = 0;  ///< of the container itself
    std::size_t index = 0;      ///< of the next element
    std::map<std::string, int, std::less<>> keys{};
  };

  bool is_at_key() const { return !levels_.empty() && levels_.back().is_map && levels_.back().at_key; }

  void refuse(const YAML::Mark& mark, std::string message) {
    if (!mistake_) mistake_ = yaml_error(mark.line + 1, mark.column + 1, path_, std::move(message));
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    refuse(mark,
           fmt::format("the tag \"{}\" is not read; leave it out, and put a text in quotes", shown(tag)));
  }

  void note_line(const YAML::Mark& mark) {
    path_bytes_ += path_.size();
    if (path_bytes_ > kMostPathBytes) {
      return refuse(mark, "there are too many values below long keys; write several files or shorter keys");
    }
    read_.document.lines.emplace(path_, mark.line + 1);
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    if (mistake_) return;
    auto& level = levels_.back();
    path_.resize(level.path_size);
    path_ = member_path(path_, key);
    if (key.size() > YamlLimits::kKeyBytes) {
      return refuse(
          mark, fmt::format("a key has {} bytes; at most {} are read", key.size(), YamlLimits::kKeyBytes));
    }
    const auto [first, is_new] = level.keys.emplace(key, mark.line + 1);
    if (!is_new) {
      return refuse(mark,
                    fmt::format("the key \"{}\" is given twice, first on line {}; leave one of them out",
                                shown(key), first->second));
    }
    note_line(mark);
    writer_.key(key);
    level.at_key = false;
  }

  /// Whether to write the value; if so, its path is set.
  bool begin_value(const YAML::Mark& mark) {
    if (mistake_) return false;
    has_value_ = true;
    if (levels_.empty()) {
      note_line(mark);
    } else if (auto& level = levels_.back(); !level.is_map) {
      path_.resize(level.path_size);
      path_ = element_path(path_, level.index++);
      note_line(mark);
    }
    return !mistake_;
  }

  void end_value() {
    if (!levels_.empty()) levels_.back().at_key = true;
  }

  bool begin_container(const YAML::Mark& mark, const std::string& tag, bool is_map) {
    if (mistake_) return false;
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse_tag(mark, tag);
    } else if (is_at_key()) {
      refuse(
          mark,
          "a key is a text, not a mapping or a list; a template such as {{ .NAME }} stands in quotes, or in "
          "a text block that begins with |");
    } else if (levels_.size() == YamlLimits::kDepth) {
      refuse(mark, fmt::format("more than {} mappings and lists are inside each other", YamlLimits::kDepth));
    }
    if (!begin_value(mark)) return false;
    levels_.push_back({.is_map = is_map, .at_key = true, .path_size = path_.size()});
    return true;
  }

  void end_container() {
    path_.resize(levels_.back().path_size);
    levels_.pop_back();
    end_value();
  }

  std::string_view text_;
  JsonWriter writer_{};
  YamlDocument read_{};
  std::vector<Level> levels_{};
  std::string path_ = "$";
  std::size_t path_bytes_ = 0;
  bool has_document_ = false;
  bool has_value_ = false;
  std::optional<Error> mistake_{};
};

/// The line from 1, without its end.
std::string_view line_of_text(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

/// What to write instead, for a message of the parser.
std::string explain_syntax(std::string_view complaint) {
  using std::pair;
  namespace Msg = YAML::ErrorMsg;
  // Not constexpr: yaml-cpp's texts are arrays without a constant address here.
  static const pair<const char*, const char*> kAdvice[] = {
      {Msg::TAB_IN_INDENTATION, kTab.data()},
      {Msg::END_OF_MAP, "this does not continue the mapping; its keys stand in one column, as `name: value`"},
      {Msg::END_OF_SEQ, "this does not continue the list; its entries stand in one column, as `- value`"},
      {Msg::END_OF_MAP_FLOW, "{ is not closed, or a comma is missing; write {a: 1, b: 2}"},
      {Msg::END_OF_SEQ_FLOW, "[ is not closed, or a comma is missing; write [a, b]"},
      {Msg::EOF_IN_SCALAR, kUnclosed.data()},
      {Msg::DOC_IN_SCALAR, kUnclosed.data()},
      {Msg::MAP_VALUE, "there is a colon where no value can stand; put a text that has \": \" in quotes"},
      {Msg::MAP_KEY, "a key cannot stand here; begin a line of its own for it"},
      {Msg::BLOCK_ENTRY, "an entry of a list cannot stand here; begin a line of its own for `- `"},
      {Msg::FLOW_END, "] or } closes nothing; put a text that has it in quotes"},
      {Msg::UNKNOWN_TOKEN, "a value cannot begin with this character; put the text in quotes"},
      {Msg::INVALID_ESCAPE,
       "there is no such escape in double quotes; write \\\\ for a backslash, or use single quotes"},
      {Msg::INVALID_HEX, "the digits of an escape are not hexadecimal; write such as \\x41 or \\u00e9"},
      {Msg::INVALID_UNICODE, "an escape is not a character of Unicode; write the character itself"},
      {Msg::CHAR_IN_BLOCK, "after | or > the line ends; begin the text on the next line"},
  };
  for (const auto& [message, advice] : kAdvice) {
    if (complaint.starts_with(message)) return advice;
  }
  if (complaint.contains("anchor") || complaint.contains("alias")) return std::string(kNoAliases);
  return fmt::format("this is not YAML: {}; write `name: value`, and texts with special characters in quotes",
                     shown(complaint));
}

Error explain_exception(std::string_view text, const YAML::Exception& problem) {
  const int line = std::max(problem.mark.line, 0) + 1;
  const auto written = line_of_text(text, line);
  // The real reason is the tab, whatever the parser says.
  const auto tab = written.substr(0, written.find_first_not_of(" \t")).find('\t');
  if (tab != std::string_view::npos)
    return yaml_error(line, static_cast<int>(tab) + 1, {}, std::string(kTab));
  return yaml_error(line, std::max(problem.mark.column, 0) + 1, {}, explain_syntax(problem.msg));
}

/// Refuses control characters, some of which the parser uses itself.
std::optional<Error> check_characters(std::string_view text) {
  if (text.size() > YamlLimits::kBytes) {
    return yaml_error(
        1, 1, {}, fmt::format("the text has {} bytes; at most {} are read", text.size(), YamlLimits::kBytes));
  }
  int line = 1;
  int column = 1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') {
      return yaml_error(line, column, {},
                        fmt::format("there is the control character 0x{0:02x}; write \\x{0:02x} in a text in "
                                    "double quotes",
                                    byte));
    }
    column = c == '\n' ? 1 : column + 1;
    if (c == '\n') ++line;
  }
  if (!is_utf8(text)) return yaml_error(1, 1, {}, "the text is not UTF-8; save it in this encoding");
  return std::nullopt;
}

}  // namespace

std::string member_path(std::string_view path, std::string_view key) {
  return fmt::format("{}.{}", path, shown(key));
}

std::string element_path(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

Result<YamlDocument> read_yaml_document(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (auto wrong = check_characters(text)) return fail(*std::move(wrong));
  JsonEvents events(text);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(events) && !events.mistake()) {}
  } catch (const YAML::Exception& problem) {
    // A mistake found in the events comes first in the text.
    if (!events.mistake()) return fail(explain_exception(text, problem));
  }
  if (events.mistake()) return fail(*events.mistake());
  return events.take();
}

Result<ConfigDocument> read_yaml(std::string_view text) {
  auto read = read_yaml_document(text);
  if (!read) {
    const auto place =
        fmt::format("line {}, column {}", read.error().field("line"), read.error().field("column"));
    return fail(std::move(read).error().while_(place));
  }
  return std::move(read->document);
}

}  // namespace pawl::workers
