// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pawl/error.hpp"

namespace pawl::server {

/// Whether this owner's lease has lapsed without a known takeover of the store: it may still be renewed, and
/// then everything continues.
inline bool is_lapse(const Error& error) {
  return error.code() == Code::store_fenced && error.field("lease") == "lapsed";
}

}  // namespace pawl::server
