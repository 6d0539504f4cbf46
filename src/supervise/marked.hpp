// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/worker_spec.hpp"

namespace pawl::supervise {

/// A template that is parsed as YAML or JSON before its values are inserted, so that no value is taken for
/// syntax: a mark replaces each expression until then. A value; const use is safe concurrently.
class MarkedTemplate {
 public:
  struct Expression {
    std::string written;      ///< including the braces
    std::size_t opening = 0;  ///< its offset in the template
    bool is_internal = false;
    std::string text{};
    bool is_text = true;           ///< otherwise `text` is JSON
    std::optional<Error> error{};  ///< why there is no value, with the fields `line` and `column`
    /// Set for a quoted variable (`{{ "{{" }} .X }}`), which is an error in a template of the children: they
    /// would get the literal text. With the fields `line` and `column`.
    std::optional<Error> quoted_variable{};
  };
  using Indices = std::set<std::size_t>;

  MarkedTemplate(std::string_view text, const Variables& variables, const InternalVariables& internal);

  /// All expressions before the first invalid one.
  const std::vector<Expression>& expressions() const { return expressions_; }
  /// The syntax error of the template, as `render` reports it.
  const std::optional<Error>& mistake() const { return mistake_; }
  /// The template with marks; has as many lines as the template.
  const std::string& text() const { return text_; }

  /// Replaces the marks in `read`, which was parsed from `text`, by values. Members of the root that
  /// `templates` names are templates of another worker: their marks become expressions again. Errors: the
  /// syntax error, the error of the first other expression (also in a comment), that of the first quoted
  /// variable in such a member, then that of `read`.
  Result<ConfigDocument> fill(Result<ConfigDocument> read, const std::vector<std::string>& templates) const;

  /// The expressions that occur only in these members.
  Indices elsewhere(std::string_view json, const std::vector<std::string>& templates) const;

  /// Whether an internal variable is used outside of these members.
  bool uses_internal(const Indices& elsewhere) const;

 private:
  class Filler;
  std::vector<Expression> expressions_{};
  std::optional<Error> mistake_{};
  std::string text_{};
};

/// Quotes the marks of JSON that stand outside of strings, so that it can be parsed.
std::string quote_marks(std::string_view text);

}  // namespace pawl::supervise
