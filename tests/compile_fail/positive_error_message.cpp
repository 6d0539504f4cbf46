// SPDX-License-Identifier: Apache-2.0
// The control of error_message_is_read_only: reading and adding context are allowed.
#include "pawl/error.hpp"

pawl::Error explain(pawl::Error error) {
  return error.message().empty() ? error : std::move(error).while_("while testing");
}
