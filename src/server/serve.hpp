// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pawl/system.hpp"
#include "server/config.hpp"

namespace pawl::server {

/// What `serve` refuses a configuration for before it touches anything: systems that do not exist, the
/// address, the files of TLS. Gives the systems that the configuration names, in its order.
Result<std::vector<System*>> check_config(const Config& config, const Systems& available);

/// Error: what the store has failed with for good, so that the process must start anew. A lease that has run
/// out and may be prolonged yet is none.
Result<void> check_engine(const Engine& engine);

/// What follows for the server from the configuration alone.
ServerOptions server_options(const Config& config);

/// The whole life of the server process: opens the store, serves, handles signals.
///
/// SIGTERM and SIGINT drain and end it, a second one at once; SIGHUP reads the configuration and the
/// certificate again, and is ignored while it drains. `reload` gives the configuration anew. Says where it
/// listens on standard output.
Result<void> serve(const Config& config, const Systems& available,
                   const std::function<Result<Config>()>& reload);

/// Notifies the service manager; no-op without $NOTIFY_SOCKET.
void notify_manager(std::string_view state);

}  // namespace pawl::server
