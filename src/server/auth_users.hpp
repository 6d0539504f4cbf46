// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Users as they are kept in an engine.

#include <string_view>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "server/auth_machines.hpp"

namespace pawl::server::auth {

/// Error: `unknown_instance` if the user does not exist or was removed.
Result<UserData> active_user(const Engine& engine, std::string_view name);

/// For new users and tokens: 1 to 64 bytes of UTF-8 without control and format characters, which could
/// control a terminal, forge a line of a log or make one name look like another. Error: `invalid_argument`.
Result<void> check_name(std::string_view name);

/// Checks that an administrator remains without this user. The caller keeps other changes of users out until
/// its own is durable. Error: `guard_refused`.
Result<void> check_other_administrator(const Engine& engine, std::string_view name);

}  // namespace pawl::server::auth
