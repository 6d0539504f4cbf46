// SPDX-License-Identifier: Apache-2.0
#include "tests/server/openapi_cases.hpp"

#include <fmt/format.h>

#include <utility>

namespace pawl::test {
namespace {

const std::string kCreate = "/v1/instances/door";
const std::string kSend = "/v1/instances/door/front/events";
const std::string kPool = "/v1/pools/uplink";

}  // namespace

std::vector<Case> reading_cases(const std::string& old_cursor) {
  return {
      {"list_machines", 200, "GET", "/v1/machines"},
      {"get_machine", 200, "GET", "/v1/machines/door"},
      {"get_machine", 404, "GET", "/v1/machines/window"},
      {"draw_machine", 200, "GET", "/v1/machines/door/diagram"},
      {"draw_machine", 400, "GET", "/v1/machines/door/diagram?format=svg"},
      {"draw_machine", 404, "GET", "/v1/machines/window/diagram"},
      {"list_instances", 200, "GET", "/v1/instances"},
      {"list_instances", 400, "GET", "/v1/instances?limit=0"},
      {"list_instances", 400, "GET", "/v1/instances?cursor=x"},
      {"list_instances", 404, "GET", "/v1/instances?machine=window"},
      {"list_instances", 400, "GET", "/v1/instances?machine=door&state=ajar"},
      {"get_instance", 200, "GET", "/v1/instances/door/front"},
      {"get_instance", 404, "GET", "/v1/instances/door/nowhere"},
      {"get_instance", 404, "GET", "/v1/instances/window/front"},
      {"get_history", 200, "GET", "/v1/instances/door/front/history"},
      {"get_history", 400, "GET", "/v1/instances/door/front/history?before=x"},
      {"get_history", 404, "GET", "/v1/instances/door/nowhere/history"},
      {"get_history", 404, "GET", "/v1/instances/window/front/history"},
      {"get_ephemerals", 200, "GET", "/v1/instances/door/front/ephemerals"},
      {"get_ephemerals", 404, "GET", "/v1/instances/door/nowhere/ephemerals"},
      {"get_ephemerals", 404, "GET", "/v1/instances/window/front/ephemerals"},
      {"list_timers", 200, "GET", "/v1/timers"},
      {"list_timers", 400, "GET", "/v1/timers?cursor=x"},
      {"list_timers", 404, "GET", "/v1/timers?machine=window"},
      {"list_pools", 200, "GET", "/v1/pools"},
      {"get_stats", 200, "GET", "/v1/stats"},
      {"list_systems", 200, "GET", "/v1/systems"},
      {"get_page", 200, "GET", "/systems/paged/page.js"},
      {"get_page", 404, "GET", "/systems/nothing/page.js"},
      {"health", 200, "GET", "/healthz"},
      {"readiness", 200, "GET", "/readyz"},
      {"metrics", 200, "GET", "/metrics"},
      {"openapi", 200, "GET", "/v1/openapi.json"},
      {"follow_events", 200, "GET", "/v1/events"},
      {"follow_events", 400, "GET", "/v1/events?after=x"},
      {"follow_events", 400, "GET", "/v1/events?recent=1001"},
      {"follow_events", 410, "GET", "/v1/events?after=" + old_cursor},
  };
}

std::vector<Case> writing_cases() {
  const std::string once = "Idempotency-Key: once\r\n";
  const std::string twice = "Idempotency-Key: twice\r\n";
  return {
      {"create_instance", 201, "POST", kCreate, R"({"key":"back"})", once},
      {"create_instance", 400, "POST", kCreate, R"({"data":{}})"},
      {"create_instance", 400, "POST", "/v1/instances/parcel", R"({"key":"by hand"})"},
      {"create_instance", 404, "POST", "/v1/instances/window", R"({"key":"back"})"},
      {"create_instance", 409, "POST", kCreate, R"({"key":"back"})"},
      {"create_instance", 422, "POST", kCreate, R"({"key":"other"})", once},
      {"send_event", 200, "POST", kSend, R"({"event":"Push","payload":{"force":1}})", twice},
      {"send_event", 400, "POST", kSend, R"({"event":"Jump"})"},
      {"send_event", 400, "POST", "/v1/instances/parcel/one/events", R"({"event":"StepDone"})"},
      {"send_event", 404, "POST", "/v1/instances/door/nowhere/events", R"({"event":"Push"})"},
      {"send_event", 404, "POST", "/v1/instances/window/front/events", R"({"event":"Push"})"},
      {"send_event", 409, "POST", kSend, R"({"event":"Pull","expected_version":7})"},
      {"send_event", 409, "POST", kSend, R"({"event":"Push"})"},
      {"send_event", 422, "POST", kSend, R"({"event":"Pull"})", twice},
      {"resize_pool", 200, "PUT", kPool, R"({"size":3})"},
      {"resize_pool", 400, "PUT", kPool, R"({"size":0})"},
      {"resize_pool", 404, "PUT", "/v1/pools/nothing", R"({"size":3})"},
      {"get_backup", 200, "GET", "/v1/backup"},
      {"start_backup", 202, "POST", "/v1/backup", R"({"name":"one.db"})"},
      {"start_backup", 400, "POST", "/v1/backup", R"({"name":"../one.db"})"},
      {"start_backup", 409, "POST", "/v1/backup", R"({"name":"there.db"})"},
  };
}

/// What must be there before: a run by its ULID, a lease, and the run "held", which is closing.
std::vector<Case> flow_cases(const std::string& ulid, const std::string& lease) {
  const std::string runs = "/v1/flows/parcel/runs";
  const std::string claim = "/v1/flows/parcel/claim";
  const std::string heartbeat = "/v1/leases/heartbeat";
  const std::string complete = "/v1/leases/complete";
  const std::string none = R"({"machine":"nothing","key":"x","number":1,"attempt":1})";
  const auto beat = fmt::format(R"({{"lease":{}}})", lease);
  const auto end = [](const std::string& of) {
    return fmt::format(R"({{"lease":{},"outcome":"done"}})", of);
  };
  std::vector<Case> cases{
      {"list_flows", 200, "GET", "/v1/flows"},
      {"start_run", 201, "POST", runs, R"({"id":"one","delay":"1h"})"},
      {"start_run", 200, "POST", runs + "?wait=10s", R"({"id":"ended","request":{"grams":-1}})"},
      {"start_run", 400, "POST", runs, R"({"priority":5000000000})"},
      {"start_run", 400, "POST", runs, R"({"after":{"flow":"parcel"}})"},
      {"start_run", 404, "POST", runs, R"({"queue":"nothing"})"},
      {"start_run", 404, "POST", runs, R"({"after":{"flow":"parcel","id":"nobody"}})"},
      {"start_run", 404, "POST", "/v1/flows/nothing/runs", "{}"},
      {"start_run", 201, "POST", runs, R"({"delay":"1h"})", "Idempotency-Key: started\r\n"},
      {"start_run", 422, "POST", runs, R"({"delay":"2h"})", "Idempotency-Key: started\r\n"},
      {"list_runs", 200, "GET", "/v1/runs"},
      {"list_runs", 400, "GET", "/v1/runs?limit=0"},
      {"list_runs", 400, "GET", "/v1/runs?cursor=x"},
      {"list_runs", 404, "GET", "/v1/runs?flow=nothing"},
      {"list_runs", 400, "GET", "/v1/runs?state=lost"},
      {"find_run", 200, "GET", "/v1/runs/" + ulid},
      {"find_run", 400, "GET", "/v1/runs/x"},
      {"find_run", 404, "GET", "/v1/runs/01BX5ZZKBKACTAV9WEVGEMMVRZ"},
      {"get_run", 200, "GET", runs + "/one"},
      {"get_run", 404, "GET", runs + "/nobody"},
      {"get_run", 404, "GET", "/v1/flows/nothing/runs/one"},
      {"wait_run", 200, "GET", runs + "/ended/wait"},
      {"wait_run", 400, "GET", runs + "/one/wait?timeout=x"},
      {"wait_run", 404, "GET", runs + "/nobody/wait"},
      {"wait_run", 404, "GET", "/v1/flows/nothing/runs/one/wait"},
      {"wait_run", 504, "GET", runs + "/one/wait?timeout=1ms"},
      {"get_timeline", 200, "GET", runs + "/ended/timeline"},
      {"get_timeline", 404, "GET", runs + "/nobody/timeline"},
      {"get_timeline", 404, "GET", "/v1/flows/nothing/runs/one/timeline"},
      {"claim_step", 200, "POST", claim, R"({"steps":["carry"]})"},
      {"claim_step", 400, "POST", claim, R"({"wait":"x"})"},
      {"claim_step", 404, "POST", "/v1/flows/nothing/claim", "{}"},
      {"keep_lease", 200, "POST", heartbeat, beat},
      {"keep_lease", 400, "POST", heartbeat, "{}"},
      {"keep_lease", 400, "POST", heartbeat, fmt::format(R"({{"lease":{},"progress":2}})", lease)},
      {"keep_lease", 404, "POST", heartbeat, fmt::format(R"({{"lease":{}}})", none)},
      {"complete_step", 200, "POST", complete, end(lease)},
      {"complete_step", 400, "POST", complete, "{}"},
      {"complete_step", 400, "POST", complete, fmt::format(R"({{"lease":{},"outcome":"tea"}})", lease)},
      {"complete_step", 404, "POST", complete,
       end(R"({"machine":"parcel","key":"nobody","number":1,"attempt":1})")},
      {"complete_step", 404, "POST", complete, end(none)},
      {"complete_step", 409, "POST", complete, fmt::format(R"({{"lease":{},"outcome":"abort"}})", lease)},
      {"keep_lease", 409, "POST", heartbeat, beat},
  };
  // In this order, so that each finds the run as it needs it.
  for (const auto& [verb, conflict] : std::vector<std::pair<std::string, std::string>>{
           {"pause", "one"}, {"resume", "one"}, {"retry", "held"}, {"cancel", "held"}}) {
    cases.push_back({verb + "_run", 200, "POST", runs + "/one/" + verb, "{}"});
    cases.push_back({verb + "_run", 409, "POST", runs + "/" + conflict + "/" + verb, "{}"});
    if (verb != "retry") cases.push_back({verb + "_run", 409, "POST", runs + "/ended/" + verb, "{}"});
    cases.push_back({verb + "_run", 400, "POST", runs + "/one/" + verb, "{}", "Idempotency-Key: a b\r\n"});
    cases.push_back(
        {verb + "_run", 422, "POST", runs + "/one/" + verb, "{}", "Idempotency-Key: started\r\n"});
    cases.push_back({verb + "_run", 404, "POST", runs + "/nobody/" + verb, "{}"});
    cases.push_back({verb + "_run", 404, "POST", "/v1/flows/nothing/runs/one/" + verb, "{}"});
  }
  return cases;
}

std::string login_body(std::string_view password) {
  return fmt::format(R"({{"user":"admin","password":"{}"}})", password);
}

std::vector<Case> image_cases() {
  const std::string known = "/v1/images/known";
  const std::string unknown = "/v1/images/unknown";
  const std::string odd = R"({"snapshot_name":"../x"})";
  return {
      {"images_list", 200, "GET", "/v1/images"},
      {"images_get", 200, "GET", known},
      {"images_get", 404, "GET", unknown},
      {"images_pool", 200, "GET", "/v1/image-pool"},
      {"images_pool", 400, "GET", "/v1/image-pool?pool_name=none"},
      {"images_garbage", 200, "GET", "/v1/image-garbage"},
      {"images_doctor", 200, "GET", "/v1/image-doctor"},
      {"images_detach_pool", 400, "POST", "/v1/image-pool/detach?pool_name=none"},
      {"images_detach_pool", 200, "POST", "/v1/image-pool/detach"},
      {"images_setup_pool", 200, "POST", "/v1/image-pool", "{}"},
      {"images_setup_pool", 400, "POST", "/v1/image-pool", R"({"extend":-1})"},
      {"images_process", 202, "POST", "/v1/images", R"({"url":"file:///none.tar","image_id":"fresh"})"},
      {"images_process", 400, "POST", "/v1/images", "{}"},
      {"images_process", 409, "POST", "/v1/images", R"({"url":"s3://b/other","image_id":"known"})"},
      {"images_activate", 202, "POST", known + "/activate", "{}"},
      {"images_activate", 400, "POST", known + "/activate", odd},
      {"images_activate", 404, "POST", unknown + "/activate", "{}"},
      {"images_deactivate", 202, "POST", known + "/deactivate", "{}"},
      {"images_deactivate", 400, "POST", known + "/deactivate", odd},
      {"images_deactivate", 404, "POST", unknown + "/deactivate", "{}"},
      {"images_collect", 202, "POST", "/v1/image-garbage"},
      {"images_remove", 404, "DELETE", unknown},
      {"images_remove", 202, "DELETE", known},
  };
}

std::vector<Case> worker_cases() {
  const std::string tree = "/v1/worker-tree";
  const std::string yaml = R"({"yaml":"children:\n  - {name: plant, workerType: child}\n"})";
  const std::string wrong = R"({"yaml":"children: 7"})";
  std::vector<Case> cases{
      {"workers_tree", 200, "GET", tree},
      {"workers_diff", 200, "POST", tree + "/diff", yaml},
      {"workers_diff", 422, "POST", tree + "/diff", wrong},
      {"workers_apply", 200, "PUT", tree, yaml},
      {"workers_apply", 409, "PUT", tree, R"({"yaml":"children: []","expected_version":77})"},
      {"workers_apply", 422, "PUT", tree, wrong},
      {"workers_list", 200, "GET", "/v1/workers"},
      {"workers_get", 200, "GET", "/v1/workers/plant"},
      {"workers_get", 404, "GET", "/v1/workers/nobody"},
      {"workers_logs", 400, "GET", "/v1/workers/plant/logs"},
      {"workers_logs", 404, "GET", "/v1/workers/nobody/logs"},
  };
  for (const std::string verb : {"park", "run", "restart"}) {
    cases.push_back({"workers_" + verb, 200, "POST", "/v1/workers/plant/" + verb, "{}"});
    cases.push_back({"workers_" + verb, 404, "POST", "/v1/workers/nobody/" + verb, "{}"});
  }
  cases.push_back({"workers_remove", 400, "DELETE", "/v1/workers/plant%2Fchild"});
  cases.push_back({"workers_remove", 404, "DELETE", "/v1/workers/nobody"});
  cases.push_back({"workers_remove", 200, "DELETE", "/v1/workers/plant"});
  return cases;
}

/// `browser` are the headers of a login, `id` names a token that may be revoked, `code` is of a login link.
std::vector<Case> auth_cases(const std::string& browser, const std::string& id, const std::string& code) {
  const std::string link = fmt::format(R"({{"code":"{}"}})", code);
  const std::string user = R"({"role":"viewer","password":"chosen by another"})";
  const std::string made = R"({"name":"ci","role":"viewer"})";
  const std::string change = fmt::format(R"({{"old":"{0}","new":"{0}"}})", kLoginPassword);
  return {
      {"log_in", 200, "POST", "/v1/login", login_body(kLoginPassword), "", false},
      {"log_in", 400, "POST", "/v1/login", R"({"user":7})", "", false},
      {"log_in", 401, "POST", "/v1/login", login_body("wrong"), "", false},
      {"log_in_with_code", 200, "POST", "/v1/login/code", link, "", false},
      {"log_in_with_code", 400, "POST", "/v1/login/code", R"({"code":7})", "", false},
      {"log_in_with_code", 401, "POST", "/v1/login/code", link, "", false},
      {"log_out", 200, "POST", "/v1/logout"},
      {"who_am_i", 200, "GET", "/v1/me"},
      {"change_password", 400, "POST", "/v1/password", R"({"old":"x","new":"short"})", browser, false},
      {"change_password", 401, "POST", "/v1/password", change},
      {"list_users", 200, "GET", "/v1/users"},
      {"put_user", 200, "PUT", "/v1/users/eve", user},
      {"put_user", 400, "PUT", "/v1/users/eve", R"({"role":"viewer","password":"short"})"},
      {"put_user", 409, "PUT", "/v1/users/admin", R"({"role":"viewer"})"},
      {"remove_user", 204, "DELETE", "/v1/users/eve"},
      {"remove_user", 400, "DELETE", "/v1/users/admin", "", browser, false},
      {"remove_user", 409, "DELETE", "/v1/users/admin"},
      {"remove_user", 404, "DELETE", "/v1/users/eve"},
      {"list_tokens", 200, "GET", "/v1/tokens"},
      {"make_token", 201, "POST", "/v1/tokens", made},
      {"make_token", 400, "POST", "/v1/tokens", R"({"name":"","role":"viewer"})"},
      {"revoke_token", 204, "DELETE", "/v1/tokens/" + id},
      {"revoke_token", 404, "DELETE", "/v1/tokens/none"},
      {"revoke_token", 409, "DELETE", "/v1/tokens/" + id},
      // Each failure but one of those that may fail; the next is refused unseen.
      {"log_in", 401, "POST", "/v1/login", login_body("wrong"), "", false},
      {"log_in", 429, "POST", "/v1/login", login_body(kLoginPassword), "", false},
      {"log_in_with_code", 429, "POST", "/v1/login/code", link, "", false},
      {"change_password", 429, "POST", "/v1/password", change, browser, false},
  };
}

}  // namespace pawl::test
