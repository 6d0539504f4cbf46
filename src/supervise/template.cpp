// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/utf8.hpp"
#include "pawl/worker_spec.hpp"
#include "supervise/scope.hpp"

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
          fmt::format("a variable begins with a dot; write {{{{ .{} }}}}", shown(word())));
    }
    return not_an_expression(
        fmt::format("\"{}\" is not known: there are no functions, conditions or loops; write {{{{ .NAME }}}}",
                    shown(name)));
  }

  Result<Expression> read_variable() {
    Expression variable;
    while (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      const auto length = supervise::name_length(rest_);
      if (length == 0) {
        return not_an_expression(
            "after a dot comes a name, which has letters, digits and '_', and no digit first; write {{ .NAME "
            "}}");
      }
      variable.path.push_back(rest_.substr(0, length));
      rest_.remove_prefix(length);
    }
    if (rest_.empty() || std::string_view(" \t\r\n}").contains(rest_.front())) return variable;
    return not_an_expression(fmt::format(
        "the name .{} goes on with \"{}\"; write {{{{ .NAME }}}} with letters, digits and '_' only",
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
            fmt::format("\"\\{}\" is not known in a quoted text; write \\\", \\\\, \\n or \\t",
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
          fmt::format("here the result grows beyond {} bytes; use fewer or shorter values", kTemplateBytes),
          {{"limit", std::to_string(kTemplateBytes)}}};
}

}  // namespace

Result<std::string> render(std::string_view text, const Variables& variables,
                           const InternalVariables& internal) {
  if (text.size() > kTemplateBytes) {
    return fail(at_position(
        text, kTemplateBytes,
        {Code::too_large,
         fmt::format("the template has {} bytes; at most {} are allowed", text.size(), kTemplateBytes),
         {{"limit", std::to_string(kTemplateBytes)}}}));
  }
  supervise::Scope scope(variables, internal);
  std::string out;
  auto rest = text;
  while (!rest.empty()) {
    const auto literal = rest.substr(0, rest.find(kOpening));
    const auto room = kTemplateBytes - out.size();
    if (literal.size() > room)
      return fail(at_position(text, text.size() - rest.size() + room, too_large_result()));
    out += literal;
    rest.remove_prefix(literal.size());
    if (rest.empty()) break;

    const auto opening = text.size() - rest.size();
    ExpressionReader reader(rest.substr(kOpening.size()));
    auto expression = reader.read();
    if (!expression) return fail(at_position(text, opening, std::move(expression).error()));
    const auto value =
        expression->path.empty() ? std::move(expression->quoted) : scope.text_of(expression->path);
    if (!value) return fail(at_position(text, opening, value.error()));
    if (value->size() > kTemplateBytes - out.size())
      return fail(at_position(text, opening, too_large_result()));
    out += *value;
    rest = reader.rest();
  }
  return out;
}

}  // namespace pawl
