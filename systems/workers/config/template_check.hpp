// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pawl/worker_spec.hpp"

namespace pawl::workers {

struct TemplateProblem {
  int line = 1;  ///< of the template, from 1
  std::string problem{};
  std::string expected{};
  std::string actual{};
  std::string suggestion{};
};

/// The errors of the template: every missing variable, up to the first expression that cannot be read.
/// Members of the root in `templates` are filled in by the children, which have more variables; a quoted
/// variable there (`{{ "{{" }} .X }}`) is a problem.
std::vector<TemplateProblem> check_template(std::string_view text, const Variables& variables,
                                            const std::vector<std::string>& templates);

}  // namespace pawl::workers
