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

/// A template that is read as YAML or JSON before its values are put in, so that no value is taken for
/// syntax: a mark stands in place of each expression. A value; const use is safe concurrently.
class MarkedTemplate {
 public:
  struct Expression {
    std::string written;      ///< with its braces
    std::size_t opening = 0;  ///< where it begins in the template
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

  /// Up to the first that is none.
  const std::vector<Expression>& expressions() const { return expressions_; }
  /// Why the template cannot be read to its end; what `render` says.
  const std::optional<Error>& mistake() const { return mistake_; }
  /// Has as many lines as the template.
  const std::string& text() const { return text_; }

  /// What was read from `text`, with the values. The members of the root that are named in `templates` are
  /// templates of somebody else's: they get their expressions back. Errors: the mistake, the error of the
  /// first expression elsewhere (also in a comment), that of the first quoted variable in such a member, then
  /// that of `read`.
  Result<ConfigDocument> fill(Result<ConfigDocument> read, const std::vector<std::string>& templates) const;

  /// The expressions that stand in these members alone.
  Indices elsewhere(std::string_view json, const std::vector<std::string>& templates) const;

  /// Whether a value that only the running program knows is filled in outside of these members.
  bool uses_internal(const Indices& elsewhere) const;

 private:
  class Filler;
  std::vector<Expression> expressions_{};
  std::optional<Error> mistake_{};
  std::string text_{};
};

/// JSON whose expressions were replaced by marks: those outside of quotes become texts that say so.
std::string quote_marks(std::string_view text);

}  // namespace pawl::supervise
