// SPDX-License-Identifier: Apache-2.0
// Steps that remote workers do: claim, heartbeat, completion.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "pawl/names.hpp"
#include "server/flow_requests.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostSteps = 100;

Result<http::Response> claim_response(const std::optional<ClaimedStep>& claimed, int status) {
  JsonWriter out;
  out.begin_object();
  if (!claimed) {
    out.key("step").null().end_object();
    return http::json(out.take(), status);
  }
  const auto& lease = claimed->lease;
  out.key("lease").begin_object().key("machine").string(lease.machine).key("key").string(lease.key);
  out.key("number").integer(lease.number).key("attempt").integer(std::int64_t{lease.attempt}).end_object();
  out.key("run_ulid").string(claimed->run_ulid).key("step").string(claimed->step);
  out.key("request").splice(claimed->request).key("response").splice(claimed->response);
  out.key("request_id").string(claimed->request_id);
  out.key("duration").string(to_string(claimed->duration)).end_object();
  return http::json(out.take(), status);
}

struct Claim {
  std::string flow;
  std::vector<std::string> steps;
  Duration wait{};
};

Result<Claim> parse_claim(const Flows& flows, const http::Request& request) {
  PAWL_TRY(const auto* flow, find_flow(flows, request));
  if (!sees_data(request.role, flow->readers)) {
    return fail(
        Code::forbidden,
        fmt::format("a claim gets the request of a run, which in the flow \"{}\" only administrators see",
                    flow->name),
        {{"needs", std::string(name(http::Role::admin))}});
  }
  PAWL_TRY(const auto body, Body::parse(request, {"steps", "wait", "worker"}));
  Claim claim{.flow = flow->name, .steps = {}};
  PAWL_TRY(claim.steps, body.texts("steps"));
  if (claim.steps.size() > kMostSteps)
    return fail(Code::too_large,
                fmt::format("$.steps has {} names; at most {}", claim.steps.size(), kMostSteps));
  PAWL_TRY(const auto wait, body.duration("wait"));
  PAWL_TRY(claim.wait, check_wait(wait.value_or(Duration::zero()), "$.wait"));
  PAWL_CHECK(body.text_or("worker", ""));
  return claim;
}

void claim_step(Flows& flows, Waits& waits, const http::Request& request, http::Reply reply) {
  auto claim = parse_claim(flows, request);
  if (!claim) return reply(fail(std::move(claim).error()));
  flows.claim(claim->flow, std::move(claim->steps), claim->wait,
              [reply = waits.hold(std::move(reply))](Result<std::optional<ClaimedStep>> claimed) mutable {
                if (!claimed) return reply(fail(std::move(claimed).error()));
                reply(later(200, *std::move(claimed), claim_response));
              });
}

Result<Lease> parse_lease(const Flows& flows, const Body& body) {
  PAWL_TRY(const auto inner, body.inner("lease", {"machine", "key", "number", "attempt"}));
  if (!inner) return fail(Code::missing_field, "$.lease: required, but absent", {{"path", "$.lease"}});
  Lease lease;
  PAWL_TRY(lease.machine, inner->text("machine"));
  PAWL_TRY(lease.key, inner->text("key"));
  PAWL_TRY(const auto number, inner->integer("number"));
  PAWL_TRY(const auto attempt, inner->integer("attempt"));
  if (!number || !attempt || *attempt < 0 || *attempt > std::numeric_limits<std::uint32_t>::max()) {
    return fail(Code::missing_field, "$.lease has a number and an attempt, as the claim has given them");
  }
  lease.number = *number;
  lease.attempt = static_cast<std::uint32_t>(*attempt);
  for (const auto* flow : flows.flows()) {
    if (flow->name == lease.machine) return lease;
  }
  return fail(Code::unknown_machine, fmt::format("there is no flow \"{}\"", lease.machine.substr(0, 64)));
}

void keep_lease(Flows& flows, const http::Request& request, http::Reply reply) {
  struct Beat {
    Lease lease;
    std::optional<double> progress;
    std::string text;
  };
  const auto beat = [&]() -> Result<Beat> {
    PAWL_TRY(const auto body, Body::parse(request, {"lease", "progress", "text"}));
    Beat made;
    PAWL_TRY(made.lease, parse_lease(flows, body));
    PAWL_TRY(made.progress, body.number("progress"));
    PAWL_TRY(made.text, body.text_or("text", ""));
    if (made.progress && (*made.progress < 0 || *made.progress > 1)) {
      return fail(Code::invalid_argument,
                  fmt::format("$.progress is a number from 0 to 1, not {}", *made.progress));
    }
    return made;
  }();
  if (!beat) return reply(fail(beat.error()));
  flows.heartbeat(beat->lease, beat->progress, beat->text,
                  [reply = std::move(reply)](Result<LeaseStatus> status) mutable {
                    if (!status) return reply(fail(std::move(status).error()));
                    JsonWriter out;
                    out.begin_object().key("duration").string(to_string(status->duration));
                    out.key("stop").boolean(status->stop).end_object();
                    reply(http::json(out.take()));
                  });
}

Result<Outcome> parse_outcome(const Body& body) {
  PAWL_TRY(const auto name, body.text("outcome"));
  PAWL_TRY(auto reason, body.text_or("reason", ""));
  PAWL_TRY(auto step, body.text_or("step", ""));
  PAWL_TRY(const auto whose, body.text_or("kind", "system"));
  const auto kind = enum_value<FailureKind>(whose);
  if (!kind) {
    return fail(Code::invalid_argument,
                fmt::format("$.kind is system or user, not \"{}\"", whose.substr(0, 64)));
  }
  if (name == "done") return Outcome::done();
  if (name == "handoff") return Outcome::handoff(std::move(reason));
  if (name == "abort") return Outcome::abort(std::move(reason));
  if (name == "unrecoverable") return Outcome::unrecoverable(std::move(reason), *kind);
  if (name == "again")
    return Outcome(Error(Code::work_threw, reason.empty() ? "the worker gave no reason" : std::move(reason)));
  if (name == "rewind") {
    if (!step.empty()) return Outcome::rewind(std::move(step), std::move(reason));
    return fail(Code::missing_field, "$.step: required of a rewind, but absent", {{"path", "$.step"}});
  }
  return fail(Code::invalid_argument,
              fmt::format("$.outcome is done, handoff, abort, unrecoverable, rewind or again, not \"{}\"",
                          name.substr(0, 64)));
}

void complete_step(Flows& flows, const http::Request& request, http::Reply reply) {
  auto done = [&]() -> Result<std::pair<Lease, RemoteOutcome>> {
    PAWL_TRY(const auto body,
             Body::parse(request, {"lease", "outcome", "reason", "step", "kind", "response"}));
    PAWL_TRY(auto lease, parse_lease(flows, body));
    PAWL_TRY(auto outcome, parse_outcome(body));
    return std::pair(std::move(lease), RemoteOutcome{std::move(outcome), body.value("response")});
  }();
  if (!done) return reply(fail(std::move(done).error()));
  flows.complete(done->first, std::move(done->second), [reply = std::move(reply)](Result<void> kept) mutable {
    if (!kept) return reply(fail(std::move(kept).error()));
    reply(http::Response{.body = "{}"});
  });
}

}  // namespace

std::vector<http::Route> lease_routes(Flows& flows, Waits& waits) {
  return {
      {.method = http::Method::post,
       .path = "/v1/flows/{flow}/claim",
       .id = "claim_step",
       .summary = "Get the oldest step that waits for a worker; `step` is null where none came in time",
       .role = http::Role::operator_,
       .request = schema_ref("Claim"),
       .response = schema_ref("ClaimedStep"),
       .errors = {Code::unknown_machine, Code::invalid_argument},
       .run_async = [&flows, &waits](
                        const http::Request& request,
                        http::Reply reply) { claim_step(flows, waits, request, std::move(reply)); }},
      {.method = http::Method::post,
       .path = "/v1/leases/heartbeat",
       .id = "keep_lease",
       .summary = "Keep a claimed step; `stop` says that it is asked to end",
       .role = http::Role::operator_,
       .request = schema_ref("Heartbeat"),
       .response = schema_ref("LeaseStatus"),
       .errors = {Code::unknown_machine, Code::missing_field, Code::invalid_argument, Code::lease_lost},
       .audited = false,
       .may_block = [](const http::Request&) { return true; },  // the run is read to note its progress
       .run_async = [&flows](const http::Request& request,
                             http::Reply reply) { keep_lease(flows, request, std::move(reply)); }},
      {.method = http::Method::post,
       .path = "/v1/leases/complete",
       .id = "complete_step",
       .summary =
           "Say what a claimed step came to; answered once that is durable. A repeat with the same result "
           "gets the first answer",
       .role = http::Role::operator_,
       .request = schema_ref("Completion"),
       .response = schema_ref("Completed"),
       .errors = {Code::unknown_machine, Code::unknown_instance, Code::missing_field, Code::invalid_argument,
                  Code::lease_lost},
       .may_block = [](const http::Request&) { return true; },  // the run is read to settle its step
       .run_async = [&flows](const http::Request& request,
                             http::Reply reply) { complete_step(flows, request, std::move(reply)); }},
  };
}

}  // namespace pawl::server
