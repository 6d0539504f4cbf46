// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Users as they are kept in an engine.

#include <string_view>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "server/auth_machines.hpp"

namespace pawl::server::auth {

/// Error: `unknown_instance` where there is none, or none any more.
Result<UserData> active_user(const Engine& engine, std::string_view name);

/// Of a new user or token: 1 to 64 bytes of UTF-8 without control characters, which could steer a terminal or
/// forge a line of a log. Error: `invalid_argument`.
Result<void> check_name(std::string_view name);

/// Another administrator stays if this user is one no longer. Whoever acts on it keeps others from changing
/// users until that is durable. Error: `guard_refused`.
Result<void> check_other_administrator(const Engine& engine, std::string_view name);

}  // namespace pawl::server::auth
