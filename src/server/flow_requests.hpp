// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the routes of flows share: finding the flow, durations with a limit, runs as answers.

#include <memory>
#include <utility>

#include "pawl/flows.hpp"
#include "server/body.hpp"
#include "server/problem.hpp"
#include "server/render.hpp"

namespace pawl::server {

/// The longest that a request may wait for something.
inline constexpr Duration kLongestWait = std::chrono::minutes(10);

/// The flow of the path, also by a former name. Error: `unknown_machine`, because a flow is one.
Result<const FlowDefinition*> find_flow(const Flows& flows, const http::Request& request);

/// From nothing to `kLongestWait`. Error: `invalid_argument`, with what it is called.
Result<Duration> check_wait(Duration wait, std::string_view what);

/// Whether the role sees requests, responses and error texts of this flow's runs.
bool sees_runs(http::Role role, const Flows& flows, std::string_view flow);

/// As the role sees it.
Result<http::Response> run_response(const Run& run, const Flows& flows, http::Role role, int status = 200);

/// Writes a run on the thread that sends it; see `later`.
inline auto run_writer(const Flows& flows, http::Role role) {
  return [&flows, role](const Run& run, int status) { return run_response(run, flows, role, status); };
}

/// An answer that is written where it is sent, not on the engine's own thread.
template <class Value, class Write>
http::Response later(int status, Value value, Write write) {
  http::Response response{.status = status};
  response.finish = [status, write, value = std::make_shared<Value>(std::move(value))](http::Response& made) {
    auto written = write(*value, status);
    made = written ? *std::move(written) : to_response(written.error());
  };
  return response;
}

}  // namespace pawl::server
