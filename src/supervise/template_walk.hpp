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
  std::string_view written;  ///< with its braces
  std::size_t opening = 0;   ///< where it begins
  bool is_internal = false;
  Result<Scope::Value> value;  ///< an error has the fields `line` and `column`
};

/// Goes through a template: `literal` gets what stands between the expressions. Ends with the first error,
/// also of `expression`. Errors: those of `render`.
Result<void> walk_template(std::string_view text, const Variables& variables,
                           const InternalVariables& internal,
                           const std::function<void(std::string_view)>& literal,
                           const std::function<Result<void>(FoundExpression)>& expression);

}  // namespace pawl::supervise
