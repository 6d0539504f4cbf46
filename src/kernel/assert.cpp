// SPDX-License-Identifier: Apache-2.0
#include "pawl/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace pawl::detail {

void assertion_failed(std::string_view expression, std::string_view sentence, std::string_view values,
                      std::source_location where) noexcept {
  std::fprintf(stderr, "%s:%u: assertion failed: %.*s (%.*s)%.*s in %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), static_cast<int>(sentence.size()), sentence.data(),
               static_cast<int>(expression.size()), expression.data(), static_cast<int>(values.size()),
               values.data(), where.function_name());
  std::fflush(stderr);
  std::abort();
}

}  // namespace pawl::detail
