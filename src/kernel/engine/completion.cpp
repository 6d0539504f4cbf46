// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/completion.hpp"

namespace pawl::detail {

// Apart from the header: g++ 12 warns falsely where it inlines the move of this text.
std::unexpected<Error> dropped() {
  return fail(Code::stopped, "the engine stopped before the outcome was known");
}

}  // namespace pawl::detail
