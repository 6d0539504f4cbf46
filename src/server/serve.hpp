// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pawl/system.hpp"
#include "server/config.hpp"

namespace pawl::server {

/// What the process does from its start to its end: opens the store, serves, obeys signals.
///
/// SIGTERM and SIGINT drain and end it, a second one at once; SIGHUP reads the configuration and the
/// certificate again. `reload` gives the configuration anew. Says where it listens on standard output.
Result<void> serve(const Config& config, std::vector<std::unique_ptr<System>> available,
                   const std::function<Result<Config>()>& reload);

/// Tells the service manager, where there is one ($NOTIFY_SOCKET).
void notify_manager(std::string_view state);

}  // namespace pawl::server
