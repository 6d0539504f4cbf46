// SPDX-License-Identifier: Apache-2.0
// What a system of somebody else may do to the server: its handlers throw, answer twice, or never.
#include <gmock/gmock.h>

#include <stdexcept>

#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

/// Handlers of every kind that throw.
class Clumsy final : public System {
 public:
  std::string name() const override { return "clumsy"; }
  std::vector<http::Route> routes(Engine&) override {
    const auto drop = [](const http::Request&) -> Result<http::Response> {
      throw std::runtime_error("it fell");
    };
    return {{.path = "/v1/clumsy/run", .id = "clumsy_run", .summary = "throws", .run = drop},
            {.path = "/v1/clumsy/fast", .id = "clumsy_fast", .summary = "throws", .run_fast = drop},
            {.path = "/v1/clumsy/async",
             .id = "clumsy_async",
             .summary = "throws",
             .run_async = [](const http::Request&, http::Reply) { throw std::runtime_error("it fell"); }},
            {.path = "/v1/clumsy/late",
             .id = "clumsy_late",
             .summary = "throws after it has answered",
             .run_async =
                 [](const http::Request&, http::Reply reply) {
                   reply(http::Response{.body = "{}"});
                   throw std::runtime_error("it fell");
                 }},
            {.path = "/v1/clumsy/kept",
             .id = "clumsy_kept",
             .summary = "throws while somebody else has the answer",
             .run_async = [this](const http::Request&, http::Reply reply) {
               kept = std::move(reply);
               throw std::runtime_error("it fell");
             }}};
  }
  void stop() override { kept = nullptr; }

  http::Reply kept;
};

TEST(SystemRoutes, AHandlerThatThrowsIsAnErrorOfItsRequestAlone) {
  Clumsy clumsy;
  ServerOptions options;
  options.systems = {&clumsy};
  World world(options);
  for (const std::string kind : {"run", "fast", "async", "kept"}) {
    const auto answer = world.call("GET", "/v1/clumsy/" + kind);
    world.expect_problem(answer, 500, "internal");
    EXPECT_THAT(answer.body, testing::HasSubstr("it fell")) << kind;
  }
  EXPECT_EQ(world.call("GET", "/healthz").status, 200);
}

TEST(SystemRoutes, AnAnswerIsGivenOnce) {
  Clumsy clumsy;
  ServerOptions options;
  options.systems = {&clumsy};
  World world(options);
  Client client(world.server->port());
  EXPECT_EQ(client.call("GET", "/v1/clumsy/late").status, 200);
  EXPECT_EQ(client.call("GET", "/v1/clumsy/kept").status, 500);
  clumsy.kept(http::Response{.body = "{}"});
  world.expect_problem(client.call("GET", "/v1/clumsy/fast"), 500, "internal");
}

TEST(Backups, AreRefusedAtOnceWhereTheyAreMadeElsewhere) {
  ServerOptions options;
  options.backups_elsewhere = "use pg_dump";
  World world(options);
  const auto refused = world.call("POST", "/v1/backup", "{}");
  world.expect_problem(refused, 400, "invalid_argument");
  EXPECT_THAT(refused.body, testing::HasSubstr("use pg_dump"));
  EXPECT_EQ(member(world.call("GET", "/v1/backup").body, "state"), "\"none\"");
}

}  // namespace
}  // namespace pawl::test
