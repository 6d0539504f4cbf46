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

/// Another administrator stays if this user is one no longer. Whoever acts on it keeps others from changing
/// users until that is durable. Error: `guard_refused`.
Result<void> check_other_administrator(const Engine& engine, std::string_view name);

}  // namespace pawl::server::auth
