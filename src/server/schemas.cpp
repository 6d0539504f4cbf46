// SPDX-License-Identifier: Apache-2.0
// JSON schemas of what the API reads and writes; render.cpp and the routes write the same.
#include <fmt/format.h>

#include "server/routes.hpp"

namespace pawl::server {
namespace {

using Named = std::pair<std::string, std::string>;

/// An object with these members, all required but those marked with `?`, and no others.
std::string object(std::string_view members) {
  std::string properties;
  std::string required;
  while (!members.empty()) {
    const auto end = std::min(members.find('\n'), members.size());
    auto line = members.substr(0, end);
    members = members.substr(std::min(end + 1, members.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) continue;
    const auto blank = line.find(' ');
    auto name = line.substr(0, blank);
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    properties += fmt::format("{}\"{}\":{}", properties.empty() ? "" : ",", name, line.substr(blank + 1));
    if (!optional) required += fmt::format("{}\"{}\"", required.empty() ? "" : ",", name);
  }
  return fmt::format(
      R"({{"type":"object","properties":{{{}}},"required":[{}],"additionalProperties":false}})", properties,
      required);
}

std::string list_of(std::string_view name) {
  return fmt::format(R"({{"type":"array","items":{}}})", schema_ref(name));
}

constexpr std::string_view kInstance = R"(
  machine {"type":"string"}
  key {"type":"string"}
  id {"type":"string","pattern":"^[0-9a-f]{32}$"}
  state {"type":"string"}
  finished {"type":"boolean"}
  version {"type":"integer"}
  generation {"type":"integer"}
  seq {"type":"integer"}
  partition? {"type":"string"}
  created_at {"type":"string","format":"date-time"}
  at {"type":"string","format":"date-time"}
  data {}
  redacted? {"type":"boolean"}
  legal {"type":"array","items":{"type":"string"}}
  timers {"type":"array","items":{"$ref":"#/components/schemas/Timer"}}
  work {"type":"array","items":{"$ref":"#/components/schemas/Work"}}
)";

constexpr std::string_view kEvent = R"(
  seq {"type":"integer"}
  cursor {"type":"string"}
  at {"type":"string","format":"date-time"}
  kind {"type":"string","enum":["created","fired","recovery","work","timer","message"]}
  machine {"type":"string"}
  key {"type":"string"}
  id {"type":"string"}
  event {"type":"string"}
  payload? {}
  state {"type":"string"}
  finished {"type":"boolean"}
  version {"type":"integer"}
  generation {"type":"integer"}
  data? {}
  redacted? {"type":"boolean"}
)";

constexpr std::string_view kProblem = R"(
  type {"type":"string"}
  title {"type":"string"}
  status {"type":"integer"}
  detail {"type":"string"}
  code {"type":"string"}
  number {"type":"integer"}
  fields {"type":"object","additionalProperties":{"type":"string"}}
  problems? {"type":"array","items":{"type":"object"}}
)";

constexpr std::string_view kStats = R"(
  transitions {"type":"integer"}
  commits {"type":"integer"}
  refused {"type":"integer"}
  conflicts {"type":"integer"}
  instances {"type":"integer"}
  queue {"type":"integer"}
  timers {"type":"integer"}
  running_work {"type":"integer"}
  cached_bytes {"type":"integer"}
  last_seq {"type":"integer"}
  counts {"type":"object","additionalProperties":{"$ref":"#/components/schemas/Counts"}}
)";

std::vector<Named> auth_schemas() {
  return {
      {"LogIn", object("user {\"type\":\"string\"}\npassword {\"type\":\"string\"}")},
      {"LogInWithCode", object("code {\"type\":\"string\"}")},
      {"LoggedIn", object(R"(user {"type":"string"}
                             role {"type":"string"}
                             csrf {"type":"string"}
                             must_change_password {"type":"boolean"})")},
      {"Identity", object(R"(user {"type":"string"}
                             role {"type":"string","enum":["anyone","viewer","operator","admin"]}
                             csrf? {"type":"string"})")},
      {"PasswordChange", object("old {\"type\":\"string\"}\nnew {\"type\":\"string\"}")},
      {"UserChange", object("role {\"type\":\"string\"}\npassword? {\"type\":\"string\"}")},
      {"User", object("user {\"type\":\"string\"}\nrole {\"type\":\"string\"}")},
      {"ListedUser", object(R"(user {"type":"string"}
                               role {"type":"string"}
                               one_time {"type":"boolean"}
                               at {"type":"string","format":"date-time"})")},
      {"Users", object("users " + list_of("ListedUser"))},
      {"TokenRequest", object(R"(name {"type":"string"}
                                 role {"type":"string","enum":["viewer","operator","admin"]}
                                 expires? {"type":"string","format":"date-time"})")},
      {"NewToken", object(R"(id {"type":"string"}
                             name {"type":"string"}
                             role {"type":"string"}
                             token {"type":"string"})")},
      {"Token", object(R"(id {"type":"string"}
                          name {"type":"string"}
                          role {"type":"string"}
                          by {"type":"string"}
                          created_at {"type":"string","format":"date-time"}
                          expires? {"type":"string","format":"date-time"})")},
      {"Tokens", object("tokens " + list_of("Token"))},
  };
}

std::vector<Named> api_schemas() {
  return {
      {"Problem", object(kProblem)},
      {"Counts", R"({"type":"object","additionalProperties":{"type":"integer"}})"},
      {"Machine", object(R"(name {"type":"string"}
                            definition {"type":"object"}
                            counts {"$ref":"#/components/schemas/Counts"}
                            instances {"type":"integer"})")},
      {"Machines", object("machines " + list_of("Machine"))},
      {"Timer", object(R"(name {"type":"string"}
                          due {"type":"string","format":"date-time"}
                          event {"type":"string"})")},
      {"Work", object(R"(number {"type":"integer"}
                         name {"type":"string"}
                         attempt {"type":"integer"}
                         not_before? {"type":"string","format":"date-time"})")},
      {"Instance", object(kInstance)},
      {"Instances", object("instances " + list_of("Instance") + "\nnext? {\"type\":\"string\"}")},
      {"Event", object(kEvent)},
      {"History", object("events " + list_of("Event") +
                         "\ntruncated {\"type\":\"boolean\"}\nnext? {\"type\":\"integer\"}")},
      {"Ephemerals", object("values {\"type\":\"object\"}\nredacted? {\"type\":\"boolean\"}")},
      {"Creation", object(R"(key {"type":"string"}
                             data? {"type":"object"}
                             partition? {"type":"string"})")},
      {"Sending", object(R"(event {"type":"string"}
                            payload? {"type":"object"}
                            expected_version? {"type":["integer","null"]})")},
      {"SetTimer", object(R"(machine {"type":"string"}
                             key {"type":"string"}
                             state {"type":"string"}
                             name {"type":"string"}
                             due {"type":"string","format":"date-time"}
                             event {"type":"string"})")},
      {"Timers", object("timers " + list_of("SetTimer") + "\nnext? {\"type\":\"string\"}")},
      {"Pool", object(R"(name {"type":"string"}
                         size {"type":"integer"}
                         granted {"type":"integer"}
                         waiting {"type":"integer"})")},
      {"Pools", object("pools " + list_of("Pool"))},
      {"Resizing", object(R"(size {"type":"integer","minimum":1,"maximum":1000000})")},
      {"Resized", object("name {\"type\":\"string\"}\nsize {\"type\":\"integer\"}")},
      {"Stats", object(kStats)},
      {"BackupRequest", object(R"(name? {"type":"string"})")},
      {"Backup", object(R"(state {"type":"string","enum":["none","running","done","failed"]}
                           file? {"type":"string"}
                           progress? {"type":"number"}
                           error? {"type":"string"})")},
      {"Status", object(R"(status {"type":"string"})")},
      {"System", object(R"(name {"type":"string"}
                           summary {"type":"string"}
                           page? {"$ref":"#/components/schemas/Page"})")},
      {"Page", object("title {\"type\":\"string\"}\nscript {\"type\":\"string\"}")},
      {"Systems", object("systems " + list_of("System"))},
  };
}

constexpr std::string_view kRun = R"(
  flow {"type":"string"}
  id {"type":"string"}
  ulid {"type":"string"}
  state {"type":"string"}
  status {"type":"string"}
  finished {"type":"boolean"}
  generation {"type":"integer"}
  step {"type":"string"}
  attempt {"type":"integer"}
  request {}
  response {}
  error? {"type":"string"}
  kind? {"type":"string","enum":["system","user"]}
  next_attempt? {"type":"string","format":"date-time"}
  queue? {"type":"string"}
  priority? {"type":"integer"}
  not_before? {"type":"string","format":"date-time"}
  after? {"$ref":"#/components/schemas/Upstream"}
  parent? {"$ref":"#/components/schemas/RunRef"}
  children? {"type":"array","items":{"$ref":"#/components/schemas/ChildRun"}}
  cleanup_errors? {"type":"array","items":{"type":"string"}}
  progress? {"type":"number","minimum":0,"maximum":1}
  progress_text? {"type":"string"}
  redacted? {"type":"boolean"}
  created_at {"type":"string","format":"date-time"}
  at {"type":"string","format":"date-time"}
  attached? {"type":"boolean"}
)";

constexpr std::string_view kRunStart = R"(
  request? {"type":"object"}
  id? {"type":"string"}
  queue? {"type":"string"}
  priority? {"type":["integer","null"]}
  delay? {"type":"string"}
  after? {"$ref":"#/components/schemas/RunRef"}
  on? {"type":"string","enum":["success","always","failure"]}
  parent? {"$ref":"#/components/schemas/RunRef"}
  from? {"type":"string"}
)";

std::vector<Named> lease_schemas() {
  return {
      {"Claim", object(R"(steps? {"type":"array","items":{"type":"string"}}
                          wait? {"type":"string"}
                          worker? {"type":"string"})")},
      {"Lease", object(R"(machine {"type":"string"}
                          key {"type":"string"}
                          number {"type":"integer"}
                          attempt {"type":"integer"})")},
      {"ClaimedStep", object(R"(lease? {"$ref":"#/components/schemas/Lease"}
                                run_ulid? {"type":"string"}
                                step {"type":["string","null"]}
                                request? {}
                                response? {}
                                request_id? {"type":"string"}
                                duration? {"type":"string"})")},
      {"Heartbeat", object(R"(lease {"$ref":"#/components/schemas/Lease"}
                              progress? {"type":["number","null"],"minimum":0,"maximum":1}
                              text? {"type":"string"})")},
      {"LeaseStatus", object("duration {\"type\":\"string\"}\nstop {\"type\":\"boolean\"}")},
      {"Completion", object(R"(lease {"$ref":"#/components/schemas/Lease"}
                 outcome {"type":"string","enum":["done","handoff","abort","unrecoverable","rewind","again"]}
                 reason? {"type":"string"}
                 step? {"type":"string"}
                 kind? {"type":"string","enum":["system","user"]}
                 response? {})")},
      {"Completed", object("")},
  };
}

std::vector<Named> flow_schemas() {
  return {
      {"FlowStep", object(R"(name {"type":"string"}
                             remote {"type":"boolean"}
                             undo {"type":"boolean"}
                             finalizer {"type":"boolean"})")},
      {"Flow", object("name {\"type\":\"string\"}\nsteps " + list_of("FlowStep") + "\ncounts " +
                      schema_ref("Counts"))},
      {"Flows", object("flows " + list_of("Flow"))},
      {"RunRef", object("flow {\"type\":\"string\"}\nid {\"type\":\"string\"}")},
      {"Upstream", object(R"(flow {"type":"string"}
                             id {"type":"string"}
                             on {"type":"string","enum":["success","always","failure"]}
                             ended? {"type":"string"})")},
      {"ChildRun", object(R"(flow {"type":"string"}
                             id {"type":"string"}
                             ended? {"type":"string"})")},
      {"Run", object(kRun)},
      {"Runs", object("runs " + list_of("Run") + "\nnext? {\"type\":\"string\"}")},
      {"RunStart", object(kRunStart)},
      {"RunSpan",
       object(R"(kind {"type":"string","enum":["delay","wait","queue","attempt","backoff","join","pause"]}
                 step {"type":"string"}
                 attempt {"type":"integer"}
                 from {"type":"string","format":"date-time"}
                 to? {"type":"string","format":"date-time"}
                 outcome {"type":"string"}
                 error? {"type":"string"})")},
      {"RunTimeline", object("run " + schema_ref("Run") + "\nspans " + list_of("RunSpan") +
                             "\ntruncated {\"type\":\"boolean\"}")},
      {"RunCancel", object(R"(reason? {"type":"string"})")},
      {"RunPause", object("")},
      {"RunRetry", object(R"(step? {"type":"string"})")},
  };
}

}  // namespace

std::string schema_ref(std::string_view name) {
  return fmt::format(R"({{"$ref":"#/components/schemas/{}"}})", name);
}

const std::vector<Named>& schemas() {
  static const auto kSchemas = [] {
    auto all = api_schemas();
    for (const auto& more : {flow_schemas(), lease_schemas(), auth_schemas()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kSchemas;
}

}  // namespace pawl::server
