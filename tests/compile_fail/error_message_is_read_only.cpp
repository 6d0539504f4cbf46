// SPDX-License-Identifier: Apache-2.0
// An error's message can be read but not rewritten behind the back of `while_`.
// expect: message_
// expect: is (private|a private member)
#include "pawl/error.hpp"

void rewrite(pawl::Error& error) { error.message_ = "all is well"; }
