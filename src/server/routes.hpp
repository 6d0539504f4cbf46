// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The routes of the API, by noun. The engine and what else they are given must outlive them.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/flows.hpp"
#include "pawl/http.hpp"
#include "server/event_feed.hpp"
#include "server/router.hpp"
#include "server/transport.hpp"
#include "server/waits.hpp"

namespace pawl::server {

/// {"$ref":"#/components/schemas/<name>"}
std::string schema_ref(std::string_view name);
/// Every schema that routes refer to, by name.
const std::vector<std::pair<std::string, std::string>>& schemas();

std::vector<http::Route> machine_routes(Engine& engine);
std::vector<http::Route> instance_routes(Engine& engine);
std::vector<http::Route> event_routes(EventFeed& feed);
std::vector<http::Route> operating_routes(Engine& engine);
/// What flows there are, and the start of their runs.
std::vector<http::Route> flow_routes(Engine& engine, Flows& flows, Waits& waits);
/// Runs: look at them, wait for them, cancel, pause, resume and retry them.
std::vector<http::Route> run_routes(Flows& flows, Waits& waits);
/// Steps that are done elsewhere.
std::vector<http::Route> lease_routes(Flows& flows, Waits& waits);
/// `draining` tells whether the server is about to stop.
std::vector<http::Route> health_routes(Engine& engine, const std::atomic<bool>& draining);

/// The OpenAPI 3.1 document of these routes.
Result<std::string> openapi(const std::vector<Router::Entry>& entries);

/// What Prometheus reads.
std::string metrics(Engine& engine, const Router& router, const EventFeed& feed, const WireCounters* wire,
                    const std::vector<System*>& systems, const Flows* flows,
                    const std::vector<std::pair<std::string, const Quota*>>& quotas);

}  // namespace pawl::server
