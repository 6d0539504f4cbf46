// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/utf8.hpp"
#include "pawl/json.hpp"
#include "pawl/worker_spec.hpp"
#include "supervise/marked.hpp"
#include "supervise/template_walk.hpp"

namespace pawl {
namespace {

constexpr std::size_t kTemplateBytes = std::size_t{1} << 20;
constexpr std::string_view kOpening = "{{";
constexpr std::string_view kClosing = "}}";

/// Says where in the text it is: lines and characters from 1.
Error at_position(std::string_view text, std::size_t offset, Error error) {
  const auto before = text.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto begun = before.substr(before.rfind('\n') + 1);
  // A character's further bytes are 10xxxxxx in UTF-8.
  const auto column = std::ranges::count_if(begun, [](char c) { return (c & 0xc0) != 0x80; }) + 1;
  return std::move(error)
      .while_(fmt::format("line {}, column {}", line, column))
      .with("line", std::to_string(line))
      .with("column", std::to_string(column));
}

std::unexpected<Error> not_an_expression(std::string why) {
  return fail(Code::template_invalid, std::move(why));
}

/// The path of a variable or, where that is empty, a quoted text.
struct Expression {
  supervise::Scope::Path path{};
  std::string quoted{};
};

/// Reads one expression; begins after its opening braces.
class ExpressionReader {
 public:
  explicit ExpressionReader(std::string_view rest) : rest_(rest) {}

  Result<Expression> read() {
    skip_blanks();
    PAWL_TRY(auto expression, read_operand());
    skip_blanks();
    if (rest_.starts_with(kClosing)) {
      rest_.remove_prefix(kClosing.size());
      return expression;
    }
    if (at_end_of_line()) return unclosed();
    return not_an_expression(
        fmt::format("\"{}\" cannot stand after an expression, because there are no functions, pipes or "
                    "operators; write {{{{ .NAME }}}}",
                    shown(word())));
  }

  /// What comes after the closing braces.
  std::string_view rest() const noexcept { return rest_; }

 private:
  bool at_end_of_line() const noexcept {
    return rest_.empty() || rest_.front() == '\n' || rest_.front() == '\r';
  }

  void skip_blanks() noexcept { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  /// What is next, up to a blank or the closing braces: for messages.
  std::string_view word() const noexcept {
    const auto found = rest_.substr(0, rest_.find_first_of(" \t\r\n"));
    return found.substr(0, found.find(kClosing, 1));
  }

  static std::unexpected<Error> unclosed() {
    return not_an_expression(
        "{{ is not closed on its line; write {{ .NAME }}, or {{ \"{{\" }} for the braces themselves");
  }

  Result<Expression> read_operand() {
    if (at_end_of_line()) return unclosed();
    if (rest_.starts_with(kClosing)) {
      return not_an_expression(
          "there is nothing between {{ and }}; write {{ .NAME }} for a variable or {{ \"text\" }} for a "
          "text");
    }
    if (rest_.front() == '.') return read_variable();
    if (rest_.front() == '"') return read_quoted();
    return refuse_operand();
  }

  std::unexpected<Error> refuse_operand() const {
    const auto name = rest_.substr(0, supervise::name_length(rest_));
    if (name.empty()) {
      return not_an_expression(
          fmt::format("\"{}\" cannot begin an expression; write {{{{ .NAME }}}} for a variable or {{{{ "
                      "\"text\" }}}} for a text",
                      shown(word())));
    }
    const auto after = rest_.substr(name.size());
    const auto closing = after.substr(std::min(after.find_first_not_of(" \t"), after.size()));
    if (closing.starts_with(kClosing) || after.starts_with('.')) {
      return not_an_expression(
          fmt::format("a variable starts with a dot; write {{{{ .{} }}}}", shown(word())));
    }
    return not_an_expression(fmt::format(
        "\"{}\" is unknown: templates have no functions, conditions or loops; write {{{{ .NAME }}}}",
        shown(name)));
  }

  Result<Expression> read_variable() {
    Expression variable;
    while (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      const auto length = supervise::name_length(rest_);
      if (length == 0) {
        return not_an_expression(
            "a dot must be followed by a name of letters, digits and '_' that does not start with a digit; "
            "write {{ .NAME "
            "}}");
      }
      variable.path.push_back(rest_.substr(0, length));
      rest_.remove_prefix(length);
    }
    if (rest_.empty() || std::string_view(" \t\r\n}").contains(rest_.front())) return variable;
    return not_an_expression(
        fmt::format("unexpected \"{1}\" after .{0}; write a name of letters, digits and '_'",
                    shown(supervise::joined_path(variable.path)), shown(word())));
  }

  Result<Expression> read_quoted() {
    Expression text;
    rest_.remove_prefix(1);
    while (!at_end_of_line()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c != '\\') {
        text.quoted += c;
        continue;
      }
      const auto escape = std::string_view("\"\\nt").find(rest_.empty() ? '\0' : rest_.front());
      if (escape == std::string_view::npos) {
        return not_an_expression(
            fmt::format("\"\\{}\" is not an escape of a quoted text; write \\\", \\\\, \\n or \\t",
                        shown(rest_.substr(0, 1))));
      }
      text.quoted += "\"\\\n\t"[escape];
      rest_.remove_prefix(1);
    }
    return not_an_expression(
        "the quoted text is not closed on its line; write {{ \"text\" }}, and \\n for a new line");
  }

  std::string_view rest_;
};

Error too_large_result() {
  return {Code::too_large,
          fmt::format("the result exceeds {} bytes here; use fewer or shorter values", kTemplateBytes),
          {{"limit", std::to_string(kTemplateBytes)}}};
}

}  // namespace

Result<void> supervise::walk_template(std::string_view text, const Variables& variables,
                                      const InternalVariables& internal,
                                      const std::function<void(std::string_view)>& literal,
                                      const std::function<Result<void>(FoundExpression)>& expression) {
  if (text.size() > kTemplateBytes) {
    return fail(at_position(
        text, kTemplateBytes,
        {Code::too_large,
         fmt::format("the template has {} bytes; at most {} are allowed", text.size(), kTemplateBytes),
         {{"limit", std::to_string(kTemplateBytes)}}}));
  }
  Scope scope(variables, internal);
  std::size_t size = 0;  // of the result
  auto rest = text;
  while (!rest.empty()) {
    const auto plain = rest.substr(0, rest.find(kOpening));
    const auto room = kTemplateBytes - size;
    if (plain.size() > room)
      return fail(at_position(text, text.size() - rest.size() + room, too_large_result()));
    size += plain.size();
    literal(plain);
    rest.remove_prefix(plain.size());
    if (rest.empty()) break;

    const auto opening = text.size() - rest.size();
    ExpressionReader reader(rest.substr(kOpening.size()));
    auto read = reader.read();
    if (!read) return fail(at_position(text, opening, std::move(read).error()));
    const auto& path = read->path;
    FoundExpression found{
        .written = rest.substr(0, rest.size() - reader.rest().size()),
        .opening = opening,
        .is_internal = !path.empty() && path[0] == "internal",
        .value = path.empty() ? Scope::Value{std::move(read->quoted)} : scope.value_of(path)};
    if (!found.value) {
      found.value = fail(at_position(text, opening, std::move(found.value).error()));
    } else if (found.value->text.size() > kTemplateBytes - size) {
      return fail(at_position(text, opening, too_large_result()));
    } else {
      size += found.value->text.size();
    }
    PAWL_CHECK(expression(std::move(found)));
    rest = reader.rest();
  }
  return {};
}

Result<std::string> render(std::string_view text, const Variables& variables,
                           const InternalVariables& internal) {
  std::string out;
  PAWL_CHECK(supervise::walk_template(
      text, variables, internal, [&](std::string_view literal) { out += literal; },
      [&](supervise::FoundExpression found) -> Result<void> {
        PAWL_TRY(const auto value, std::move(found.value));
        out += value.text;
        return {};
      }));
  return out;
}

// A template that is parsed before its values are inserted.

namespace {

/// A private-use character without meaning in YAML and JSON. A mark is a number between two of it; an
/// unquoted scalar is enclosed in another pair.
constexpr std::string_view kMark = "\uE0F0";
/// A document with values may be larger than its template.
constexpr JsonLimits kLimits{.depth = 64, .bytes = std::size_t{64} << 20};

}  // namespace

std::string unquoted_text(std::string_view scalar) {
  if (!scalar.contains(kMark)) return std::string(scalar);
  return fmt::format("{0}{1}{0}", kMark, scalar);
}

namespace {

/// The error for the quoted variable `{{ "{{" }} .X }}` or `{{ "{{ .X }}" }}` in a template that is handed on
/// as it is; none for other expressions. `value` is what the expression gives, `after` the text behind it.
std::optional<Error> quoted_variable_error(std::string_view text, std::size_t opening, std::string_view value,
                                           std::string_view after) {
  const auto inner = value.rfind(kOpening);
  if (inner == std::string_view::npos) return std::nullopt;
  value.remove_prefix(inner + kOpening.size());
  ExpressionReader reader(value.empty() ? after.substr(0, after.find('\n')) : value);
  const auto variable = reader.read();
  if (!variable || variable->path.empty()) return std::nullopt;
  return at_position(text, opening,
                     {Code::template_invalid,
                      fmt::format("templates of children are handed on as they are; write {{{{ .{} }}}} "
                                  "without quoting the braces",
                                  shown(supervise::joined_path(variable->path)))});
}

}  // namespace

namespace supervise {

MarkedTemplate::MarkedTemplate(std::string_view text, const Variables& variables,
                               const InternalVariables& internal) {
  auto walked = walk_template(
      text, variables, internal, [this](std::string_view literal) { text_ += literal; },
      [&](FoundExpression found) -> Result<void> {
        text_ += fmt::format("{0}{1}{0}", kMark, expressions_.size());
        Expression one{.written = std::string(found.written),
                       .opening = found.opening,
                       .is_internal = found.is_internal};
        if (found.value) {
          one.text = std::move(found.value->text);
          one.is_text = found.value->is_text;
          if (found.written.contains('"')) {
            one.quoted_variable = quoted_variable_error(text, found.opening, one.text,
                                                        text.substr(found.opening + found.written.size()));
          }
        } else {
          one.error = std::move(found.value).error();
        }
        expressions_.push_back(std::move(one));
        return {};
      });
  if (!walked) {
    mistake_ = std::move(walked).error();
  } else if (text.contains(kMark)) {
    mistake_ = Error(Code::template_invalid,
                     "a configuration must not contain the character U+E0F0; put it into a variable");
  }
}

/// Copies a document with values in place of the marks.
class MarkedTemplate::Filler {
 public:
  /// What replaces a mark: values, or in a template of another worker its expression.
  enum class Use : std::uint8_t { values, expressions };

  Filler(const std::vector<Expression>& expressions, const std::vector<std::string>& templates)
      : expressions_(expressions), templates_(templates) {}

  Result<std::string> fill(JsonValue root) {
    write(root, Use::values, true);
    return out_.take();
  }

  std::string text_of(std::string_view marked, Use use) {
    std::string text;
    while (!marked.empty()) {
      const auto literal = marked.substr(0, marked.find(kMark));
      text += literal;
      marked.remove_prefix(literal.size());
      if (marked.empty()) break;
      marked.remove_prefix(kMark.size());
      std::size_t index = 0;
      const auto [end, failed] = std::from_chars(marked.data(), marked.data() + marked.size(), index);
      if (failed != std::errc{} || index >= expressions_.size()) continue;
      marked.remove_prefix(static_cast<std::size_t>(end - marked.data()));
      if (marked.starts_with(kMark)) marked.remove_prefix(kMark.size());
      text += use == Use::values ? expressions_[index].text : expressions_[index].written;
      (use == Use::values ? filled_ : elsewhere_).insert(index);
      last_ = index;
      all_values_ = all_values_ && !expressions_[index].is_text;
    }
    return text;
  }

  const Indices& filled() const { return filled_; }
  const Indices& elsewhere() const { return elsewhere_; }

 private:
  void write(JsonValue value, Use use, bool is_root) {
    switch (value.kind()) {
      case JsonKind::object:
        out_.begin_object();
        for (std::size_t i = 0; i < value.size(); ++i) {
          const auto key = text_of(inside(value.key_at(i)), use);
          const bool is_template = is_root && std::ranges::find(templates_, key) != templates_.end();
          out_.key(key);
          write(value.at(i), is_template ? Use::expressions : use, false);
        }
        out_.end_object();
        return;
      case JsonKind::array:
        out_.begin_array();
        for (std::size_t i = 0; i < value.size(); ++i) write(value.at(i), use, false);
        out_.end_array();
        return;
      case JsonKind::string:
        return write_text(*value.as_string(), use);
      case JsonKind::null:
      case JsonKind::boolean:
      case JsonKind::integer:
      case JsonKind::number:
        break;
    }
    out_.splice(value.to_text());
  }

  void write_text(std::string_view marked, Use use) {
    const auto bare = inside(marked);
    all_values_ = true;
    const auto text = text_of(bare, use);
    const bool unquoted = bare.size() < marked.size() && use == Use::values;
    // An unquoted value keeps its type; adjacent numbers form one number.
    if (unquoted && all_values_ && (bare == fmt::format("{0}{1}{0}", kMark, last_) || is_scalar(text))) {
      out_.splice(text);
    } else {
      out_.string(text);
    }
  }

  static bool is_scalar(std::string_view text) {
    const auto read = JsonDocument::parse(text);
    if (!read) return false;
    const auto kind = read->root().kind();
    return kind == JsonKind::integer || kind == JsonKind::number || kind == JsonKind::boolean ||
           kind == JsonKind::null;
  }

  /// Strips the marks of an unquoted scalar.
  static std::string_view inside(std::string_view marked) {
    if (!marked.starts_with(kMark) || !marked.substr(kMark.size()).starts_with(kMark)) return marked;
    return marked.substr(kMark.size(), marked.size() - 2 * kMark.size());
  }

  const std::vector<Expression>& expressions_;
  const std::vector<std::string>& templates_;
  JsonWriter out_{};
  Indices filled_{};
  Indices elsewhere_{};
  std::size_t last_ = 0;
  bool all_values_ = true;
};

Result<ConfigDocument> MarkedTemplate::fill(Result<ConfigDocument> read,
                                            const std::vector<std::string>& templates) const {
  if (mistake_) return fail(*mistake_);
  if (expressions_.empty()) return read;
  const auto document = read ? JsonDocument::parse(read->json, kLimits) : fail(read.error());
  const auto exempt = document ? elsewhere(read->json, templates) : Indices();
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    const auto& one = expressions_[i];
    const auto& error = exempt.contains(i) ? one.quoted_variable : one.error;
    if (error) return fail(*error);
  }
  if (!document) return fail(document.error());
  Filler filler(expressions_, templates);
  ConfigDocument filled;
  PAWL_TRY(filled.json, filler.fill(document->root()));
  for (const auto& [path, line] : read->lines)
    filled.lines.emplace(filler.text_of(path, Filler::Use::values), line);
  return filled;
}

MarkedTemplate::Indices MarkedTemplate::elsewhere(std::string_view json,
                                                  const std::vector<std::string>& templates) const {
  const auto document = JsonDocument::parse(json, kLimits);
  if (!document || templates.empty()) return {};
  Filler filler(expressions_, templates);
  (void)filler.fill(document->root());
  Indices alone;
  std::ranges::set_difference(filler.elsewhere(), filler.filled(), std::inserter(alone, alone.end()));
  return alone;
}

bool MarkedTemplate::uses_internal(const Indices& elsewhere) const {
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    if (expressions_[i].is_internal && !elsewhere.contains(i)) return true;
  }
  return false;
}

std::string quote_marks(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    std::size_t length = 1;
    if (text.front() == '"') {
      while (length < text.size() && text[length] != '"') length += text[length] == '\\' ? 2U : 1U;
      length = std::min(length + 1, text.size());
      made += text.substr(0, length);
    } else {
      length = std::min(text.find_first_of("{}[],:\" \t\r\n"), text.size());
      const auto word = text.substr(0, length);
      made += word.contains(kMark) ? fmt::format("\"{}\"", unquoted_text(word)) : std::string(word);
      if (length == 0) made += text.substr(0, length = 1);
    }
    text.remove_prefix(length);
  }
  return made;
}

}  // namespace supervise
}  // namespace pawl
