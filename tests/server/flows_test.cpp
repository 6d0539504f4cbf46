// SPDX-License-Identifier: Apache-2.0
// The routes of flows and runs, on a real server.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "server/routes.hpp"
#include "server/waits.hpp"
#include "tests/server/parcels.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using ::testing::HasSubstr;

const std::string kRuns = "/v1/flows/parcel/runs";
const std::string kComplete = "/v1/leases/complete";
const std::string kHeartbeat = "/v1/leases/heartbeat";

class FlowRoutes : public testing::Test {
 protected:
  FlowRoutes() : world_(options(&parcels_)) {}

  static ServerOptions options(System* system) {
    ServerOptions made;
    made.systems = {system};
    return made;
  }

  Answer post(std::string_view target, std::string_view body = "{}") {
    return world_.call("POST", target, body);
  }
  /// The run after a start that must succeed.
  std::string start(std::string_view id, std::string_view more = "", std::string_view flow = "parcel") {
    const auto answer =
        post(fmt::format("/v1/flows/{}/runs", flow),
             fmt::format(R"({{"id":"{}","request":{{"grams":70,"to":"Oslo"}}{}}})", id, more));
    EXPECT_EQ(answer.status, 201) << answer.body;
    return answer.body;
  }
  /// What a claim came to, which waits for a step.
  std::string claim(std::string_view flow = "parcel") {
    const auto answer = post(fmt::format("/v1/flows/{}/claim", flow), R"({"wait":"10s","worker":"w1"})");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
  Answer complete(const std::string& claimed, std::string_view more = R"(,"outcome":"done")") {
    return post(kComplete, fmt::format(R"({{"lease":{}{}}})", member(claimed, "lease"), more));
  }
  std::string ended(std::string_view id, std::string_view flow = "parcel") {
    const auto answer = world_.call("GET", fmt::format("/v1/flows/{}/runs/{}/wait?timeout=10s", flow, id));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
  std::string ids(std::string_view query) {
    const auto answer = world_.call("GET", fmt::format("/v1/runs{}", query));
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto document = JsonDocument::parse(answer.body).value();
    const auto runs = *document.root().find("runs");
    std::string all;
    for (std::size_t i = 0; i < runs.size(); ++i)
      all += fmt::format("{} ", *runs.at(i).find("id")->as_string());
    return all;
  }

  Parcels parcels_;
  World world_;
};

TEST_F(FlowRoutes, ListTheFlowsWithTheirStepsAndCounts) {
  start("a");
  claim();
  const auto body = world_.call("GET", "/v1/flows").body;
  EXPECT_THAT(body, HasSubstr(R"({"name":"parcel","steps":[)"
                              R"({"name":"weigh","remote":false,"undo":true,"finalizer":false},)"
                              R"({"name":"carry","remote":true,"undo":false,"finalizer":false},)"
                              R"({"name":"sweep","remote":false,"undo":false,"finalizer":true}])"));
  EXPECT_THAT(body, HasSubstr(R"("running":1)"));
}

TEST_F(FlowRoutes, AStartAnswersWithTheRunAndWhereItIs) {
  const auto answer = post(kRuns, R"({"id":"a/b","request":{"grams":70}})");
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(answer.header("Location"), "/v1/flows/parcel/runs/a%2Fb");
  EXPECT_EQ(member(answer.body, "flow"), R"("parcel")");
  EXPECT_EQ(member(answer.body, "request"), R"({"grams":70})");
  EXPECT_EQ(member(answer.body, "step"), R"("weigh")");
  EXPECT_EQ(world_.call("GET", answer.header("Location")).status, 200);
}

TEST_F(FlowRoutes, AFieldThatTheRequestLacksIsRefusedWithTheNearestName) {
  const auto refused = post(kRuns, R"({"id":"a","request":{"gram":70}})");
  world_.expect_problem(refused, 400, "unknown_name");
  EXPECT_THAT(refused.body, HasSubstr(R"($.gram: there is no such field (did you mean \"grams\"?))"));
  EXPECT_EQ(world_.last_seq(), 0);
}

TEST_F(FlowRoutes, AStartWithoutAnIdTakesTheRunsUlid) {
  const auto answer = post(kRuns);
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(member(answer.body, "id"), member(answer.body, "ulid"));
  const auto ulid = member(answer.body, "ulid");
  const auto found = world_.call("GET", "/v1/runs/" + ulid.substr(1, ulid.size() - 2));
  EXPECT_EQ(found.status, 200) << found.body;
  EXPECT_EQ(member(found.body, "ulid"), ulid);
}

TEST_F(FlowRoutes, ASecondStartFindsTheUnfinishedRun) {
  const auto first = start("a");
  const auto second = post(kRuns, R"({"id":"a"})");
  EXPECT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(member(second.body, "attached"), "true");
  EXPECT_EQ(member(second.body, "ulid"), member(first, "ulid"));
}

TEST_F(FlowRoutes, AStartMayWaitForTheEnd) {
  const auto aborted = post(kRuns + "?wait=10s", R"({"request":{"grams":-1}})");
  EXPECT_EQ(aborted.status, 200) << aborted.body;
  EXPECT_EQ(member(aborted.body, "state"), R"("aborted")");
  EXPECT_EQ(member(aborted.body, "error"), R"("no weight")");
  const auto over = post(kRuns + "?wait=1ms", R"({"id":"slow"})");
  EXPECT_EQ(over.status, 201) << over.body;
  EXPECT_EQ(member(over.body, "finished"), "false");
}

TEST_F(FlowRoutes, AStartIsShownWithItsPlan) {
  start("first");
  EXPECT_EQ(member(start("late", R"(,"delay":"1h")"), "state"), R"("delayed")");
  const auto after = start("next", R"(,"after":{"flow":"parcel","id":"first"},"on":"always")");
  EXPECT_EQ(member(after, "after"), R"({"flow":"parcel","id":"first","on":"always"})");
  const auto queued = start("queued", R"(,"queue":"van","priority":7)");
  EXPECT_EQ(member(queued, "queue"), R"("van")");
  EXPECT_EQ(member(queued, "priority"), "7");
  const auto child = start("child", R"(,"parent":{"flow":"parcel","id":"first"},"from":"carry")");
  EXPECT_EQ(member(child, "parent"), R"({"flow":"parcel","id":"first"})");
  EXPECT_EQ(member(child, "step"), R"("carry")");
}

TEST_F(FlowRoutes, ABadStartIsRefusedAndStartsNothing) {
  struct Bad {
    std::string target;
    std::string body;
    int status;
    std::string code;
  };
  const auto before = world_.last_seq();
  for (const auto& [target, body, status, code] : std::vector<Bad>{
           {"/v1/flows/parcels/runs", "{}", 404, "unknown_machine"},
           {kRuns, R"({"requst":{}})", 400, "unknown_name"},
           {kRuns, R"({"request":[]})", 400, "wrong_type"},
           {kRuns, R"({"request":{"grams":"heavy"}})", 400, "wrong_type"},
           {kRuns, R"({"id":7})", 400, "wrong_type"},
           {kRuns, R"({"queue":"vans"})", 404, "unknown_pool"},
           {kRuns, R"({"priority":4294967296})", 400, "invalid_argument"},
           {kRuns, R"({"delay":"soon"})", 400, "invalid_argument"},
           {kRuns, R"({"delay":"-1s"})", 400, "invalid_argument"},
           {kRuns, R"({"after":{"flow":"parcel"}})", 400, "missing_field"},
           {kRuns, R"({"after":{"flow":"parcel","id":"x","at":1}})", 400, "unknown_name"},
           {kRuns, R"({"after":{"flow":"parcel","id":"nobody"}})", 404, "unknown_instance"},
           {kRuns, R"({"after":{"flow":"nothing","id":"x"}})", 400, "unknown_name"},
           {kRuns, R"({"on":"sunday"})", 400, "invalid_argument"},
           {kRuns, R"({"from":"fly"})", 400, "unknown_name"},
           {kRuns + "?wait=long", "{}", 400, "invalid_argument"},
           {kRuns + "?wait=11m", "{}", 400, "invalid_argument"},
           {kRuns + "?wait=-1s", "{}", 400, "invalid_argument"},
       }) {
    SCOPED_TRACE(target + " " + body);
    world_.expect_problem(post(target, body), status, code);
  }
  EXPECT_EQ(world_.last_seq(), before);
}

TEST_F(FlowRoutes, RunsAreListedByFlowStateAndQueue) {
  start("a");
  start("b", R"(,"queue":"van")");
  start("c", R"(,"delay":"1h")");
  start("d", "", "letter");
  EXPECT_EQ(ids(""), "a b c d ");
  EXPECT_EQ(ids("?flow=letter"), "d ");
  EXPECT_EQ(ids("?state=delayed"), "c ");
  EXPECT_EQ(ids("?finished=true"), "");
  EXPECT_EQ(ids("?queue=van"), "b ");
  EXPECT_EQ(ids("?queue=van&finished=true"), "");
  EXPECT_EQ(ids("?queue=van&flow=letter"), "");
  const auto page = world_.call("GET", "/v1/runs?limit=3").body;
  const auto next = member(page, "next");
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(ids("?cursor=" + next.substr(1, next.size() - 2)), "d ");
  world_.expect_problem(world_.call("GET", "/v1/runs?flow=nothing"), 404, "unknown_machine");
  world_.expect_problem(world_.call("GET", "/v1/runs?state=flying"), 400, "unknown_state");
  world_.expect_problem(world_.call("GET", "/v1/runs?limit=0"), 400, "invalid_argument");
  world_.expect_problem(world_.call("GET", "/v1/runs?cursor=x"), 400, "cursor_invalid");
}

TEST_F(FlowRoutes, RunsAreListedTheNewestFirstPageByPage) {
  for (const auto* id : {"a", "b", "c"}) start(id);
  start("d", "", "letter");
  EXPECT_EQ(ids("?order=newest"), "d c b a ");
  EXPECT_EQ(ids("?order=newest&flow=parcel"), "c b a ");
  EXPECT_EQ(ids("?order=oldest"), "a b c d ");
  const auto page = world_.call("GET", "/v1/runs?order=newest&limit=3").body;
  const auto next = member(page, "next");
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(ids("?order=newest&cursor=" + next.substr(1, next.size() - 2)), "a ");
  world_.expect_problem(world_.call("GET", "/v1/runs?order=best"), 400, "invalid_argument");
}

TEST_F(FlowRoutes, ARepeatedStartFindsTheRunOfTheFirstEvenWhenThatHasEnded) {
  const auto start_with = [&](std::string_view key, std::string_view body) {
    return world_.call("POST", kRuns + "?wait=10s", body, fmt::format("Idempotency-Key: {}\r\n", key));
  };
  for (const std::string body :
       {R"({"request":{"grams":-1}})", R"({"id":"own","request":{"grams":-1},"delay":"1ms"})"}) {
    SCOPED_TRACE(body);
    const auto key = fmt::format("key-{}", body.size());
    const auto first = start_with(key, body);
    EXPECT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(member(first.body, "state"), R"("aborted")");
    const auto before = world_.last_seq();
    const auto second = start_with(key, body);
    EXPECT_EQ(second.status, 200) << second.body;
    EXPECT_EQ(member(second.body, "ulid"), member(first.body, "ulid"));
    EXPECT_EQ(member(second.body, "id"), member(first.body, "id"));
    EXPECT_EQ(member(second.body, "state"), R"("aborted")") << "as it is now";
    EXPECT_EQ(member(second.body, "attached"), "true");
    EXPECT_EQ(world_.last_seq(), before);
  }
  EXPECT_NE(member(start_with("another", R"({"request":{"grams":-1}})").body, "id"),
            member(start_with("third", R"({"request":{"grams":-1}})").body, "id"));
  world_.expect_problem(start_with("third", R"({"request":{"grams":-2}})"), 422, "request_id_reused");
  world_.expect_problem(start_with("not printable", "{}"), 400, "invalid_argument");
}

TEST_F(FlowRoutes, RunsAreBegunAndChangedByTheRoutesOfFlowsAlone) {
  start("a", R"(,"delay":"1h")");
  const auto before = world_.last_seq();
  for (const auto& [target, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/instances/parcel", R"({"key":"b"})"},
           {"/v1/instances/parcel/a/events", R"({"event":"StepDone","payload":{"step":"weigh","next":""}})"},
           {"/v1/instances/parcel/a/events", R"({"event":"Cancel","payload":{"reason":"so"}})"}}) {
    SCOPED_TRACE(target);
    const auto answer = post(target, body);
    world_.expect_problem(answer, 400, "invalid_argument");
    EXPECT_THAT(answer.body, HasSubstr("/v1/flows/parcel/runs"));
  }
  EXPECT_EQ(world_.last_seq(), before);
}

TEST_F(FlowRoutes, ARunThatIsNotThereIsNotFound) {
  world_.expect_problem(world_.call("GET", kRuns + "/nobody"), 404, "unknown_instance");
  world_.expect_problem(world_.call("GET", "/v1/flows/nothing/runs/a"), 404, "unknown_machine");
  world_.expect_problem(world_.call("GET", kRuns + "/nobody/wait"), 404, "unknown_instance");
  world_.expect_problem(world_.call("GET", kRuns + "/nobody/timeline"), 404, "unknown_instance");
  world_.expect_problem(world_.call("GET", "/v1/runs/01BX5ZZKBKACTAV9WEVGEMMVRZ"), 404, "unknown_instance");
  world_.expect_problem(world_.call("GET", "/v1/runs/a"), 400, "invalid_argument");
}

TEST_F(FlowRoutes, WaitingHasAnEnd) {
  start("a");
  world_.expect_problem(world_.call("GET", kRuns + "/a/wait?timeout=1ms"), 504, "timed_out");
  world_.expect_problem(world_.call("GET", kRuns + "/a/wait?timeout=1h"), 400, "invalid_argument");
  world_.expect_problem(world_.call("GET", kRuns + "/a/wait?timeout=x"), 400, "invalid_argument");
}

TEST_F(FlowRoutes, HundredsWaitAtOnceWithoutKeepingAnybodyElseWaiting) {
  start("a");
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 300; ++i) {
    waiting.push_back(std::make_unique<Client>(world_.server->port()));
    waiting.back()->send(fmt::format("GET {}/a/wait?timeout=60s HTTP/1.1\r\nHost: localhost\r\n\r\n", kRuns));
  }
  EXPECT_EQ(complete(claim(), R"(,"outcome":"done","response":{"signed_by":"Ada"})").status, 200);
  for (auto& client : waiting) {
    const auto answer = client->read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(member(answer.body, "state"), R"("done")");
  }
}

TEST(Waits, AServerThatStopsAnswersWhoWaitsOnce) {
  server::Waits waits;
  std::vector<Result<http::Response>> answers;
  const auto note = [&](Result<http::Response> answer) { answers.push_back(std::move(answer)); };
  auto answered = waits.hold(note);
  auto waiting = waits.hold(note);
  answered(http::Response{});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0]);
  waits.close();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].error().code(), Code::stopped);
  waiting(http::Response{});
  EXPECT_EQ(answers.size(), 2U);
  auto late = waits.hold(note);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[2].error().code(), Code::stopped);
  late(http::Response{});
  EXPECT_EQ(answers.size(), 3U);
}

TEST_F(FlowRoutes, AServerThatStopsDoesNotWaitWithThoseWhoWait) {
  start("a");
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<Client>(world_.server->port()));
    waiting.back()->send(
        fmt::format("GET {}/a/wait?timeout=600s HTTP/1.1\r\nHost: localhost\r\n\r\n", kRuns));
  }
  EXPECT_TRUE(world_.server->drain(std::chrono::seconds(60)));
}

TEST_F(FlowRoutes, ATimelineTellsWhatTookTime) {
  start("a");
  complete(claim(), R"(,"outcome":"again","reason":"the road is closed")");
  complete(claim());
  ended("a");
  const auto answer = world_.call("GET", kRuns + "/a/timeline");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(member(answer.body, "truncated"), "false");
  EXPECT_EQ(member(member(answer.body, "run"), "state"), R"("done")");
  EXPECT_THAT(answer.body, HasSubstr(R"({"kind":"attempt","step":"weigh","attempt":1)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("outcome":"failed","error":)"));
  EXPECT_THAT(answer.body, HasSubstr("the road is closed"));
  EXPECT_THAT(answer.body, HasSubstr(R"({"kind":"attempt","step":"carry","attempt":2)"));
}

TEST_F(FlowRoutes, ARunIsCancelledPausedResumedAndRetried) {
  start("a", R"(,"delay":"1h")");
  EXPECT_EQ(member(post(kRuns + "/a/pause").body, "state"), R"("paused")");
  world_.expect_problem(post(kRuns + "/a/pause"), 409, "illegal_event");
  EXPECT_EQ(member(post(kRuns + "/a/resume").body, "state"), R"("delayed")");
  world_.expect_problem(post(kRuns + "/a/resume"), 409, "illegal_event");
  EXPECT_EQ(post(kRuns + "/a/cancel", R"({"reason":"no longer wanted"})").status, 200);
  const auto cancelled = ended("a");
  EXPECT_EQ(member(cancelled, "state"), R"("cancelled")");
  EXPECT_EQ(member(cancelled, "error"), R"("no longer wanted")");
  world_.expect_problem(post(kRuns + "/a/cancel", "{}"), 409, "finished_instance");
  const auto again = post(kRuns + "/a/retry", R"({"step":"carry"})");
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(member(again.body, "step"), R"("carry")");
  EXPECT_EQ(member(again.body, "generation"), "2");
  complete(claim());
  EXPECT_EQ(member(ended("a"), "state"), R"("done")");
}

TEST_F(FlowRoutes, ARepeatedChangeGetsTheOutcomeOfTheFirst) {
  const auto change = [&](std::string_view verb, std::string_view key, std::string_view body = "{}") {
    return world_.call("POST", fmt::format("{}/a/{}", kRuns, verb), body,
                       fmt::format("Idempotency-Key: {}\r\n", key));
  };
  start("a", R"(,"delay":"1h")");
  for (const auto* verb : {"pause", "resume", "cancel"}) {
    SCOPED_TRACE(verb);
    const auto first = change(verb, verb);
    EXPECT_EQ(first.status, 200) << first.body;
    if (verb == std::string_view("cancel")) ended("a");
    const auto before = world_.last_seq();
    const auto second = change(verb, verb);
    EXPECT_EQ(second.status, 200) << second.body;
    EXPECT_EQ(member(second.body, "state"), member(first.body, "state"));
    EXPECT_EQ(world_.last_seq(), before);
  }
  world_.expect_problem(change("cancel", "cancel", R"({"reason":"another"})"), 422, "request_id_reused");
  world_.expect_problem(change("pause", "cancel"), 422, "request_id_reused");
  world_.expect_problem(change("pause", "not printable"), 400, "invalid_argument");
}

TEST_F(FlowRoutes, ARepeatedRetryFindsTheRunThatTheFirstHasStarted) {
  const auto retry = [&](std::string_view key, std::string_view body) {
    return world_.call("POST", kRuns + "/a/retry", body, fmt::format("Idempotency-Key: {}\r\n", key));
  };
  start("a", R"(,"delay":"1h")");
  EXPECT_EQ(retry("early", R"({"step":"carry"})").status, 200);
  post(kRuns + "/a/cancel");
  ended("a");
  const auto before = world_.last_seq();
  EXPECT_EQ(retry("early", R"({"step":"carry"})").status, 200) << "though the run has ended since";
  EXPECT_EQ(world_.last_seq(), before);
  const auto first = retry("late", R"({"step":"carry"})");
  EXPECT_EQ(member(first.body, "generation"), "2") << first.body;
  const auto second = retry("late", R"({"step":"carry"})");
  EXPECT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(member(second.body, "ulid"), member(first.body, "ulid"));
  EXPECT_EQ(complete(claim()).status, 200);
  ended("a");
  const auto third = retry("late", R"({"step":"carry"})");
  EXPECT_EQ(member(third.body, "ulid"), member(first.body, "ulid")) << "also after its end";
  EXPECT_EQ(member(third.body, "generation"), "2");
}

TEST_F(FlowRoutes, ARepeatedCompletionGetsTheOutcomeOfTheFirst) {
  start("a");
  const auto claimed = claim();
  const std::string done = R"(,"outcome":"done","response":{"weighed":70,"signed_by":"Ada"})";
  EXPECT_EQ(complete(claimed, done).status, 200);
  EXPECT_EQ(complete(claimed, done).status, 200);
  ended("a");
  const auto before = world_.last_seq();
  EXPECT_EQ(complete(claimed, done).status, 200);
  EXPECT_EQ(world_.last_seq(), before);
  world_.expect_problem(complete(claimed, R"(,"outcome":"abort")"), 409, "lease_lost");
}

TEST_F(FlowRoutes, OnlyAStartThatComesAfterAnotherRunMayBlock) {
  server::Waits waits;
  const auto routes = server::flow_routes(*world_.engine, world_.flows, waits);
  const auto start = std::ranges::find(routes, "start_run", &http::Route::id);
  const auto may_block = [&](std::string body) {
    http::Request request;
    request.body = std::move(body);
    return start->may_block(request);
  };
  EXPECT_TRUE(may_block(R"({"after":{"flow":"parcel","id":"a"}})"));
  EXPECT_TRUE(may_block(R"({"\u0061fter":{"flow":"parcel","id":"a"}})")) << "the same name";
  EXPECT_FALSE(may_block(R"({"request":{"after":"noon"}})"));
  EXPECT_FALSE(may_block(R"({"id":"\\ \"after\""})"));
  EXPECT_FALSE(may_block(R"({})"));
  EXPECT_FALSE(may_block(R"({"after")")) << "it is refused";
}

TEST_F(FlowRoutes, AChangeThatIsNotUnderstoodIsRefused) {
  start("a");
  world_.expect_problem(post(kRuns + "/a/retry", R"({"step":"fly"})"), 400, "unknown_name");
  world_.expect_problem(post(kRuns + "/a/cancel", R"({"why":"so"})"), 400, "unknown_name");
  world_.expect_problem(post(kRuns + "/a/pause", R"({"reason":"so"})"), 400, "unknown_name");
  world_.expect_problem(post(kRuns + "/nobody/cancel"), 404, "unknown_instance");
  world_.expect_problem(post("/v1/flows/nothing/runs/a/cancel"), 404, "unknown_machine");
}

TEST_F(FlowRoutes, AWorkerClaimsKeepsAndCompletesAStep) {
  const auto run = start("a");
  const auto claimed = claim();
  EXPECT_EQ(member(claimed, "step"), R"("carry")");
  EXPECT_EQ(member(claimed, "run_ulid"), member(run, "ulid"));
  EXPECT_EQ(member(claimed, "request"), R"({"grams":70,"to":"Oslo"})");
  EXPECT_EQ(member(claimed, "response"), R"({"weighed":70,"signed_by":""})");
  EXPECT_EQ(member(claimed, "duration"), R"("30s")");
  EXPECT_EQ(member(member(claimed, "lease"), "attempt"), "1");
  const auto kept = post(kHeartbeat, fmt::format(R"({{"lease":{},"progress":0.5,"text":"half way"}})",
                                                 member(claimed, "lease")));
  EXPECT_EQ(kept.body, R"({"duration":"30s","stop":false})");
  const auto shown = world_.call("GET", kRuns + "/a").body;
  EXPECT_EQ(member(shown, "progress"), "0.5");
  EXPECT_EQ(member(shown, "progress_text"), R"("half way")");
  const auto done = complete(claimed, R"(,"outcome":"done","response":{"weighed":70,"signed_by":"Ada"})");
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.body, "{}");
  EXPECT_EQ(member(ended("a"), "response"), R"({"weighed":70,"signed_by":"Ada"})");
}

TEST_F(FlowRoutes, AClaimWithoutWorkSaysSo) {
  const auto none = post("/v1/flows/parcel/claim", R"({"steps":["carry"]})");
  EXPECT_EQ(none.status, 200);
  EXPECT_EQ(none.body, R"({"step":null})");
}

TEST_F(FlowRoutes, AClaimWaitsForWork) {
  Client worker(world_.server->port());
  const std::string body = R"({"wait":"60s"})";
  worker.send(
      fmt::format("POST /v1/flows/parcel/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/json\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  start("a");
  EXPECT_EQ(member(worker.read().body, "step"), R"("carry")");
}

TEST_F(FlowRoutes, AWorkerIsToldToStopWhenTheRunIsCancelled) {
  start("a");
  const auto claimed = claim();
  EXPECT_EQ(member(post(kRuns + "/a/cancel").body, "status"), R"("cancelling")");
  const auto kept = post(kHeartbeat, fmt::format(R"({{"lease":{}}})", member(claimed, "lease")));
  EXPECT_EQ(member(kept.body, "stop"), "true") << kept.body;
  complete(claimed, R"(,"outcome":"again","reason":"stopped")");
  EXPECT_EQ(member(ended("a"), "state"), R"("cancelled")");
}

TEST_F(FlowRoutes, ALeaseThatHasEndedIsWorthNothing) {
  start("a", "", "letter");
  const auto first = claim("letter");
  const auto second = claim("letter");  // comes when the first lease has ended
  EXPECT_EQ(member(member(second, "lease"), "attempt"), "2");
  world_.expect_problem(post(kHeartbeat, fmt::format(R"({{"lease":{}}})", member(first, "lease"))), 409,
                        "lease_lost");
  world_.expect_problem(complete(first), 409, "lease_lost");
}

TEST_F(FlowRoutes, EachOutcomeOfAWorkerIsUnderstood) {
  struct Told {
    std::string outcome;
    std::string state;
  };
  for (const auto& [outcome, state] : std::vector<Told>{
           {R"(,"outcome":"handoff","reason":"nobody home")", R"("handed_off")"},
           {R"(,"outcome":"abort","reason":"refused")", R"("aborted")"},
           {R"(,"outcome":"unrecoverable","reason":"lost","kind":"user")", R"("failed")"},
       }) {
    const auto id = member(post(kRuns).body, "id");
    const auto answer = complete(claim(), outcome);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(member(ended(id.substr(1, id.size() - 2)), "state"), state);
  }
  start("back");
  EXPECT_EQ(complete(claim(), R"(,"outcome":"rewind","step":"weigh","reason":"too heavy")").status, 200);
  const auto again = claim();
  EXPECT_EQ(member(member(again, "lease"), "attempt"), "1");
  EXPECT_EQ(complete(again).status, 200);
}

TEST_F(FlowRoutes, WhatAWorkerSaysIsCheckedBeforeItCounts) {
  start("a");
  const auto claimed = claim();
  const auto before = world_.last_seq();
  world_.expect_problem(complete(claimed, R"(,"outcome":"done","response":{"weighed":"much"})"), 400,
                        "wrong_type");
  world_.expect_problem(complete(claimed, R"(,"outcome":"fine")"), 400, "invalid_argument");
  world_.expect_problem(complete(claimed, ""), 400, "missing_field");
  world_.expect_problem(complete(claimed, R"(,"outcome":"rewind")"), 400, "missing_field");
  world_.expect_problem(complete(claimed, R"(,"outcome":"done","kind":"nobody")"), 400, "invalid_argument");
  world_.expect_problem(post(kComplete, R"({"outcome":"done"})"), 400, "missing_field");
  world_.expect_problem(
      post(kComplete, R"({"lease":{"machine":"parcel","key":"a","number":1},"outcome":"done"})"), 400,
      "missing_field");
  world_.expect_problem(
      post(kComplete, R"({"lease":{"machine":"nothing","key":"a","number":1,"attempt":1},"outcome":"done"})"),
      404, "unknown_machine");
  world_.expect_problem(
      post(kHeartbeat, fmt::format(R"({{"lease":{},"progress":2}})", member(claimed, "lease"))), 400,
      "invalid_argument");
  world_.expect_problem(post("/v1/flows/parcel/claim", R"({"steps":["weigh"]})"), 400, "unknown_name");
  world_.expect_problem(post("/v1/flows/parcel/claim", R"({"steps":"carry"})"), 400, "wrong_type");
  world_.expect_problem(post("/v1/flows/parcel/claim", R"({"wait":"1h"})"), 400, "invalid_argument");
  world_.expect_problem(post("/v1/flows/nothing/claim"), 404, "unknown_machine");
  EXPECT_EQ(world_.last_seq(), before);
  EXPECT_EQ(complete(claimed).status, 200);
}

TEST_F(FlowRoutes, MetricsCountTheEndsOfSteps) {
  start("a");
  complete(claim());
  ended("a");
  const auto text = world_.call("GET", "/metrics").body;
  EXPECT_THAT(text, HasSubstr(R"(pawl_flow_steps_total{flow="parcel",step="weigh",outcome="done"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(pawl_flow_steps_total{flow="parcel",step="weigh",outcome="aborted"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(pawl_flow_steps_total{flow="letter",)")) << "also where none has run";
  EXPECT_THAT(text, HasSubstr(R"(pawl_flow_steps_total{flow="parcel",step="carry",outcome="done"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(pawl_instances{machine="parcel",state="done"} 1)"));
}

}  // namespace
}  // namespace pawl::test
