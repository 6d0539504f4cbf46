// SPDX-License-Identifier: Apache-2.0
#include "server/flow_requests.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/suggestion.hpp"

namespace pawl::server {

Result<const FlowDefinition*> find_flow(const Flows& flows, const http::Request& request) {
  const auto& name = request.parameter("flow");
  std::vector<std::string> known;
  for (const auto* flow : flows.flows()) {
    const auto& former = flow->former_names;
    if (flow->name == name || std::ranges::find(former, name) != former.end()) return flow;
    known.push_back(flow->name);
  }
  return fail(Code::unknown_machine, fmt::format("there is no flow \"{}\"{}; GET /v1/flows lists them",
                                                 name.substr(0, 64), suggestion(name, known)));
}

Result<Duration> check_wait(Duration wait, std::string_view what) {
  if (wait >= Duration::zero() && wait <= kLongestWait) return wait;
  return fail(Code::invalid_argument,
              fmt::format("{} is from 0s to {}, not {}", what, to_string(kLongestWait), to_string(wait)));
}

bool sees_runs(http::Role role, const Flows& flows, std::string_view flow) {
  const auto all = flows.flows();
  const auto found = std::ranges::find(all, flow, &FlowDefinition::name);
  return sees_data(role, found == all.end() ? Readers::admins : (*found)->readers);
}

Result<http::Response> run_response(const Run& run, const Flows& flows, http::Role role, int status) {
  JsonWriter out;
  write_run(out, run, sees_runs(role, flows, run.flow));
  PAWL_TRY(auto response, http::json(out.take(), status));
  if (status == 201) {
    response.headers.emplace_back(
        "Location",
        fmt::format("/v1/flows/{}/runs/{}", http::encode_percent(run.flow), http::encode_percent(run.id)));
  }
  return response;
}

}  // namespace pawl::server
