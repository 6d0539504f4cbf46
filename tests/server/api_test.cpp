// SPDX-License-Identifier: Apache-2.0
// The API: what each route answers, what it refuses, and that a refusal changes nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "server/problem.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Api, MachinesAreListedWithTheirDefinitionAndCounts) {
  World world;
  world.engine->create<door>("front").value();
  const auto answer = world.call("GET", "/v1/machines/door");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(member(answer.body, "counts"), R"({"closed":1,"locked":0,"open":0})");
  EXPECT_EQ(member(answer.body, "instances"), "1");
  EXPECT_THAT(member(answer.body, "definition"), HasSubstr("TurnKey"));
  EXPECT_EQ(world.call("GET", "/v1/machines").body, R"({"machines":[)" + answer.body + "]}");
  const auto unknown = world.call("GET", "/v1/machines/dor");
  world.expect_problem(unknown, 404, "unknown_machine");
  EXPECT_THAT(unknown.body, HasSubstr("did you mean \\\"door\\\""));
}

TEST(Api, AMachineIsDrawnInThreeForms) {
  World world;
  EXPECT_THAT(world.call("GET", "/v1/machines/door/diagram").body, HasSubstr("stateDiagram-v2"));
  EXPECT_THAT(world.call("GET", "/v1/machines/door/diagram?format=dot").body, HasSubstr("digraph"));
  EXPECT_THAT(world.call("GET", "/v1/machines/door/diagram?format=json").body, HasSubstr("\"transitions\""));
  world.expect_problem(world.call("GET", "/v1/machines/door/diagram?format=svg"), 400, "invalid_argument");
}

TEST(Api, AnInstanceIsBegunSentEventsAndRead) {
  World world;
  const auto created = world.call("POST", "/v1/instances/door", R"({"key":"front","data":{"opened":3}})");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.header("Location"), "/v1/instances/door/front");
  EXPECT_EQ(member(created.body, "legal"), R"(["Push","TurnKey"])");
  const auto sent =
      world.call("POST", "/v1/instances/door/front/events", R"({"event":"Push","payload":{"force":2}})");
  EXPECT_EQ(sent.status, 200);
  EXPECT_EQ(member(sent.body, "state"), "\"open\"");
  EXPECT_EQ(member(sent.body, "data"), R"({"opened":5})");
  EXPECT_EQ(world.call("GET", "/v1/instances/door/front").body, sent.body);
}

TEST(Api, AKeyMayHoldAnyCharacterWhenItIsEncoded) {
  World world;
  const auto created = world.call("POST", "/v1/instances/door", R"({"key":"a/b ü?"})");
  EXPECT_EQ(created.header("Location"), "/v1/instances/door/a%2Fb%20%C3%BC%3F");
  EXPECT_EQ(world.call("GET", created.header("Location")).status, 200);
  world.expect_problem(world.call("GET", "/v1/instances/door/a%2"), 400, "malformed_request");
  world.expect_problem(world.call("GET", "/v1/instances/door/a%zz"), 400, "malformed_request");
}

TEST(Api, AnUnchangedInstanceIsNotSentAgain) {
  World world;
  world.engine->create<door>("front").value();
  const auto first = world.call("GET", "/v1/instances/door/front");
  const auto same = fmt::format("If-None-Match: {}\r\n", first.header("ETag"));
  const auto second = world.call("GET", "/v1/instances/door/front", {}, same);
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(second.header("ETag"), first.header("ETag"));
  world.engine->send<door>("front", Push{}).value();
  EXPECT_EQ(world.call("GET", "/v1/instances/door/front", {}, same).status, 200);
}

TEST(Api, RefusedEventsSayWhyAndChangeNothing) {
  World world;
  world.engine->create<door>("front").value();
  const auto before = world.last_seq();
  const auto send = [&](std::string_view body) {
    return world.call("POST", "/v1/instances/door/front/events", body);
  };
  world.expect_problem(send(R"({"event":"Pull"})"), 409, "illegal_event");
  world.expect_problem(send(R"({"event":"Jump"})"), 400, "unknown_event");
  world.expect_problem(send(R"({"event":"Push","expected_version":7})"), 409, "version_conflict");
  world.expect_problem(send(R"({"event":"TurnKey"})"), 400, "missing_field");
  world.expect_problem(send(R"({"event":"Push","payload":{"force":"much"}})"), 400, "wrong_type");
  world.expect_problem(send(R"({"event":"Push","payload":[1]})"), 400, "wrong_type");
  world.expect_problem(send(R"({"event":7})"), 400, "wrong_type");
  world.expect_problem(send(R"({"event":"Push","expected_version":"1"})"), 400, "wrong_type");
  world.expect_problem(send(R"({"payload":{}})"), 400, "missing_field");
  world.expect_problem(send(R"({"event":"Push","expected":1})"), 400, "unknown_name");
  const auto misspelled = send(R"({"event":"Push","payload":{"forse":2}})");
  world.expect_problem(misspelled, 400, "unknown_name");
  EXPECT_EQ(member(misspelled.body, "detail"),
            R"_("the payload of Push: $.forse: there is no such field (did you mean \"force\"?)")_");
  world.expect_problem(send(R"(["Push"])"), 400, "wrong_type");
  world.expect_problem(send(R"({"event":)"), 400, "malformed_json");
  world.expect_problem(send(std::string(100, '[') + std::string(100, ']')), 400, "too_deep");
  world.expect_problem(world.call("POST", "/v1/instances/door/back/events", R"({"event":"Push"})"), 404,
                       "unknown_instance");
  world.expect_problem(world.call("POST", "/v1/instances/window/front/events", R"({"event":"Push"})"), 404,
                       "unknown_machine");
  world.expect_problem(world.call("POST", "/v1/instances/door", R"({"key":"front"})"), 409,
                       "duplicate_instance");
  world.expect_problem(world.call("POST", "/v1/instances/door/front/events", R"({"event":"Push"})",
                                  "Content-Type: text/plain\r\n"),
                       415, "unsupported_media_type");
  world.expect_problem(world.call("POST", "/v1/instances/door/front/events"), 415, "unsupported_media_type");
  EXPECT_EQ(world.last_seq(), before);
}

TEST(Api, AFieldThatTheDataLacksIsRefusedWithTheNearestName) {
  World world;
  const auto refused = world.call("POST", "/v1/instances/door", R"({"key":"front","data":{"openend":3}})");
  world.expect_problem(refused, 400, "unknown_name");
  EXPECT_EQ(member(refused.body, "detail"),
            R"_("the data of a door: $.openend: there is no such field (did you mean \"opened\"?)")_");
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Api, ARepeatWithTheSameIdempotencyKeyIsAnsweredAsTheFirst) {
  World world;
  const std::string_view key = "Idempotency-Key: order-17\r\n";
  const auto first = world.call("POST", "/v1/instances/door", R"({"key":"front"})", key);
  const auto second = world.call("POST", "/v1/instances/door", R"({"key":"front"})", key);
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(world.last_seq(), 1);
  world.expect_problem(world.call("POST", "/v1/instances/door", R"({"key":"back"})", key), 422,
                       "request_id_reused");
  world.expect_problem(
      world.call("POST", "/v1/instances/door", R"({"key":"back"})", "Idempotency-Key: a b\r\n"), 400,
      "invalid_argument");
  EXPECT_EQ(world.last_seq(), 1);
}

TEST(Api, InstancesAreListedPageByPageAndFiltered) {
  World world;
  for (int i = 0; i < 5; ++i) world.engine->create<door>(fmt::format("d{}", i)).value();
  world.engine->send<door>("d3", Push{}).value();
  const auto first = world.call("GET", "/v1/instances?machine=door&limit=2");
  const auto cursor = member(first.body, "next");
  ASSERT_GT(cursor.size(), 2);
  const auto next =
      world.call("GET", "/v1/instances?machine=door&limit=3&cursor=" + cursor.substr(1, cursor.size() - 2));
  EXPECT_THAT(next.body, HasSubstr("\"d2\""));
  EXPECT_THAT(next.body, HasSubstr("\"d4\""));
  EXPECT_EQ(member(next.body, "next"), "");
  EXPECT_THAT(world.call("GET", "/v1/instances?state=open").body, HasSubstr("\"d3\""));
  EXPECT_THAT(world.call("GET", "/v1/instances?state=open").body, Not(HasSubstr("\"d1\"")));
  EXPECT_EQ(world.call("GET", "/v1/instances?finished=true").body, R"({"instances":[]})");
  EXPECT_EQ(world.call("GET", "/v1/instances?changed_after=2999-01-01T00:00:00Z").body,
            R"({"instances":[]})");
}

TEST(Api, InstancesAreFoundByTheBeginningOfTheirKey) {
  World world;
  for (int i = 0; i < 30; ++i) world.engine->create<door>(fmt::format("{}-{}", i % 3, i)).value();
  const auto first = world.call("GET", "/v1/instances?prefix=2-&limit=4");
  const auto listed = [](const Answer& answer) {
    std::vector<std::string> keys;
    const auto document = JsonDocument::parse(answer.body).value();
    const auto instances = *document.root().find("instances");
    for (std::size_t i = 0; i < instances.size(); ++i)
      keys.emplace_back(*instances.at(i).find("key")->as_string());
    return keys;
  };
  EXPECT_THAT(listed(first), testing::ElementsAre("2-2", "2-5", "2-8", "2-11"));
  const auto cursor = member(first.body, "next");
  const auto rest =
      world.call("GET", "/v1/instances?prefix=2-&limit=100&cursor=" + cursor.substr(1, cursor.size() - 2));
  EXPECT_THAT(listed(rest), testing::ElementsAre("2-14", "2-17", "2-20", "2-23", "2-26", "2-29"));
  EXPECT_EQ(member(rest.body, "next"), "");
  EXPECT_EQ(world.call("GET", "/v1/instances?prefix=none").body, R"({"instances":[]})");
}

TEST(Api, WithoutAuthEverybodyIsAnAdministrator) {
  World world;
  EXPECT_EQ(world.call("GET", "/v1/me").body, R"({"user":"anonymous","role":"admin"})");
}

TEST(Api, WrongFiltersAreRefused) {
  World world;
  world.expect_problem(world.call("GET", "/v1/instances?limit=0"), 400, "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances?limit=1001"), 400, "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances?limit=2x"), 400, "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances?finished=maybe"), 400, "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances?changed_after=today"), 400, "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances?cursor=x"), 400, "cursor_invalid");
  world.expect_problem(world.call("GET", "/v1/instances?machine=window"), 404, "unknown_machine");
  world.expect_problem(world.call("GET", "/v1/instances?machine=door&state=ajar"), 400, "unknown_state");
  world.expect_problem(world.call("GET", "/v1/instances?limit=1&limit=2"), 400, "invalid_argument");
  const auto misspelt = world.call("GET", "/v1/instances?sate=open");
  world.expect_problem(misspelt, 400, "unknown_name");
  EXPECT_THAT(misspelt.body, HasSubstr("did you mean \\\"state\\\""));
}

TEST(Api, HistoryIsNewestFirstAndPaged) {
  World world;
  world.engine->create<door>("front").value();
  world.engine->send<door>("front", Push{}).value();
  world.engine->send<door>("front", Pull{}).value();
  const auto first = world.call("GET", "/v1/instances/door/front/history?limit=2");
  EXPECT_THAT(first.body, HasSubstr(R"("event":"Pull")"));
  EXPECT_THAT(first.body, Not(HasSubstr("created\"")));
  EXPECT_EQ(member(first.body, "next"), "2");
  const auto rest = world.call("GET", "/v1/instances/door/front/history?before=2");
  EXPECT_THAT(rest.body, HasSubstr(R"("kind":"created")"));
  EXPECT_EQ(member(rest.body, "next"), "");
  world.expect_problem(world.call("GET", "/v1/instances/door/front/history?before=-1"), 400,
                       "invalid_argument");
  world.expect_problem(world.call("GET", "/v1/instances/door/back/history"), 404, "unknown_instance");
}

TEST(Api, AParameterOutsideOfItsRangeIsRefusedWithItsNameAndRange) {
  World world;
  world.engine->create<door>("front").value();
  for (const std::string target : {"/v1/instances/door/front/history?before=9223372036854775808",
                                   "/v1/instances/door/front/history?before=99999999999999999999",
                                   "/v1/events?recent=99999999999999999999"}) {
    SCOPED_TRACE(target);
    const auto answer = world.call("GET", target);
    world.expect_problem(answer, 400, "invalid_argument");
    EXPECT_THAT(answer.body, HasSubstr(target.contains("before") ? "before" : "recent"));
    EXPECT_THAT(answer.body, HasSubstr("from 0 to 9223372036854775807"));
  }
  const auto limit = world.call("GET", "/v1/instances?limit=99999999999999999999");
  world.expect_problem(limit, 400, "invalid_argument");
  EXPECT_THAT(limit.body, HasSubstr("from 1 to "));
}

TEST(Api, TimersAreListed) {
  World world;
  world.engine->create<door>("front").value();
  world.engine->send<door>("front", Push{}).value();
  world.engine->send<door>("front", Pull{}).value();
  EXPECT_THAT(world.call("GET", "/v1/timers?machine=door").body, HasSubstr(R"("name":"draught")"));
  world.expect_problem(world.call("GET", "/v1/timers?cursor=x"), 400, "cursor_invalid");
}

TEST(Api, APoolIsResized) {
  World world;
  const auto resized = world.call("PUT", "/v1/pools/uplink", R"({"size":9})");
  EXPECT_EQ(resized.body, R"({"name":"uplink","size":9})");
  for (const std::string_view body : {R"({"size":0})", R"({"size":-1})", R"({"size":1000001})"}) {
    world.expect_problem(world.call("PUT", "/v1/pools/uplink", body), 400, "invalid_argument");
  }
  world.expect_problem(world.call("PUT", "/v1/pools/uplink", R"({"size":1.5})"), 400, "wrong_type");
  world.expect_problem(world.call("PUT", "/v1/pools/uplink", R"({})"), 400, "missing_field");
  world.expect_problem(world.call("PUT", "/v1/pools/downlink", R"({"size":9})"), 404, "unknown_pool");
}

TEST(Api, PathsAndMethodsThatAreNotServedAreRefused) {
  World world;
  world.expect_problem(world.call("GET", "/v2/machines"), 404, "unknown_route");
  world.expect_problem(world.call("GET", "/v1/machines/"), 404, "unknown_route");
  const auto wrong = world.call("DELETE", "/v1/instances/door/front");
  world.expect_problem(wrong, 405, "method_not_allowed");
  EXPECT_EQ(wrong.header("Allow"), "GET");
  world.expect_problem(world.call("GET", "/healthz", "{}"), 400, "invalid_argument");
}

TEST(Api, HealthAndReadinessAreToldApart) {
  World world;
  EXPECT_EQ(world.call("GET", "/healthz").body, R"({"status":"alive"})");
  EXPECT_EQ(world.call("GET", "/readyz").body, R"({"status":"ready"})");
  world.server->drain(Duration(0));
  EXPECT_EQ(world.server->handle({.path = "/healthz"}).status, 200);
  EXPECT_EQ(world.server->handle({.path = "/readyz"}).status, 503);
}

TEST(Api, MetricsCountFromZeroAndByRoute) {
  World world;
  const auto before = world.call("GET", "/metrics").body;
  EXPECT_THAT(before, HasSubstr("pawl_transitions_total 0\n"));
  EXPECT_THAT(before, HasSubstr("pawl_http_requests_total{route=\"send_event\",status=\"4xx\"} 0\n"));
  EXPECT_THAT(before, HasSubstr("pawl_instances{machine=\"door\",state=\"open\"} 0\n"));
  world.call("POST", "/v1/instances/door/front/events", R"({"event":"Push"})");
  world.call("POST", "/v1/instances/door", R"({"key":"front"})");
  const auto after = world.call("GET", "/metrics").body;
  EXPECT_THAT(after, HasSubstr("pawl_transitions_total 1\n"));
  EXPECT_THAT(after, HasSubstr("pawl_http_requests_total{route=\"send_event\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("pawl_http_request_seconds_count{route=\"create_instance\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("pawl_instances{machine=\"door\",state=\"closed\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("pawl_permits{pool=\"uplink\"} 2\n"));
}

TEST(Api, AnswersMayComeWithoutANetwork) {
  World world;
  const auto created = world.server->handle({.method = http::Method::post,
                                             .path = "/v1/instances/door",
                                             .headers = {{"content-type", "application/json"}},
                                             .body = R"({"key":"front"})"});
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(member(created.body, "key"), "\"front\"");
}

TEST(Problem, EveryCodeHasAStatusOfAnError) {
  for (const auto& code : all_codes()) {
    const auto status = server::status_of(code.code);
    EXPECT_GE(status, 400) << code.name;
    EXPECT_NE(server::reason(status), status == 500 ? "" : server::reason(500)) << code.name;
  }
}

TEST(Problem, AMessageThatIsNoUtf8IsStillAProblem) {
  const auto text = server::to_problem(Error(Code::unknown_route, "nothing at /\xff"));
  EXPECT_EQ(member(text, "code"), "\"unknown_route\"");
}

TEST(Api, ANameThatStandsTwiceInABodyIsRefusedWithItsPath) {
  World world;
  const auto expect_path = [&](std::string_view body, std::string_view path) {
    const auto answer = world.call("POST", "/v1/instances/door", body);
    world.expect_problem(answer, 400, "malformed_json");
    EXPECT_EQ(member(member(answer.body, "fields"), "path"), fmt::format("\"{}\"", path));
  };
  expect_path(R"({"key":"a","key":"b"})", "$.key");
  expect_path(R"({"key":"a","data":{"opened":1,"opened":2}})", "$.data.opened");
  expect_path(R"({"key":"a","data":{"list":[0,{},[{"x":1,"y":{},"x":2}]]}})", "$.data.list[2][0].x");
  std::string many = R"({"key":"a")";
  for (int i = 0; i < 20; ++i) many += fmt::format(R"(,"f{}":0)", i);
  expect_path(many + R"(,"f7":1})", "$.f7");
  EXPECT_EQ(world.last_seq(), 0);
}

}  // namespace
}  // namespace pawl::test
