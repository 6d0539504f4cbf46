// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/worker_spec.hpp"
#include "supervise/scope.hpp"

namespace pawl::supervise {

/// One expression of a template.
struct FoundExpression {
  std::string_view written;  ///< including the braces
  std::size_t opening = 0;   ///< its offset in the template
  bool is_internal = false;
  Result<Scope::Value> value;  ///< an error has the fields `line` and `column`
};

/// Calls `literal` for each text between expressions and `expression` for each expression, in order. Ends
/// with the first error, also of `expression`. Errors: those of `render`.
Result<void> walk_template(std::string_view text, const Variables& variables,
                           const InternalVariables& internal,
                           const std::function<void(std::string_view)>& literal,
                           const std::function<Result<void>(FoundExpression)>& expression);

}  // namespace pawl::supervise
