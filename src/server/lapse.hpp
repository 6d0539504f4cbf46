// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pawl/error.hpp"

namespace pawl::server {

/// Whether this owner's lease has run out, but nobody is known to have taken the store over: it may be
/// prolonged yet, and then everything goes on.
inline bool is_lapse(const Error& error) {
  return error.code() == Code::store_fenced && error.field("lease") == "lapsed";
}

}  // namespace pawl::server
