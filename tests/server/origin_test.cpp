// SPDX-License-Identifier: Apache-2.0
// Requests that a web page makes a browser send: by a name that it made point here, or from another site.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/server/auth_world.hpp"
#include "workers/system.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;

constexpr std::string_view kNewDoor = R"({"key":"front"})";

/// The header as it is given; `call` of a client adds a Host of its own.
Answer ask(World& world, std::string_view headers, std::string_view line = "GET /v1/machines HTTP/1.1") {
  Client client(world.server->port());
  client.send(fmt::format("{}\r\n{}\r\n", line, headers));
  return client.read();
}

TEST(WithoutAuth, TheServerAnswersToEachNameOfThisMachine) {
  World world;
  for (const std::string_view host :
       {"127.0.0.1", "127.0.0.1:7420", "127.1.2.3:1", "[::1]", "[::1]:65535", "localhost", "LocalHost:80"}) {
    EXPECT_EQ(ask(world, fmt::format("Host: {}\r\n", host)).status, 200) << host;
  }
}

TEST(WithoutAuth, ANameThatOnlyBeginsLikeOneOfThisMachineIsRefused) {
  World world;
  for (const std::string_view host : {"127.0.0.1.evil.example",
                                      "127.evil.example:80",
                                      "localhost.evil.example",
                                      "localhost.",
                                      "[::1].evil.example",
                                      "[::1",
                                      "::1",
                                      "127.1",
                                      "127.0.0.01",
                                      "0127.0.0.1",
                                      "0x7f.0.0.1",
                                      "2130706433",
                                      "127.0.0.256",
                                      "127.0.0.1.",
                                      "127.0.0.1:",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:80x",
                                      "127.0.0.1@evil.example",
                                      "[127.0.0.1]",
                                      "[localhost]",
                                      "128.0.0.1",
                                      "evil.example:80",
                                      ""}) {
    SCOPED_TRACE(host);
    world.expect_problem(ask(world, fmt::format("Host: {}\r\n", host)), 403, "forbidden");
  }
}

TEST(WithoutAuth, AServerThatAnswersToAnyNameWarnsAtItsStartThatWebPagesReachIt) {
  std::mutex mutex;
  std::vector<std::string> warnings;
  const auto sink = std::make_shared<CallbackSink>([&](const LogRecord& record) {
    const std::lock_guard lock(mutex);
    if (record.level == LogLevel::warn) warnings.emplace_back(record.message);
  });
  ServerOptions options;
  options.log = Logger(sink, [] { return Time{}; }, LogLevel::info);
  { const World world(options); }
  EXPECT_THAT(warnings, testing::IsEmpty());
  options.allow_insecure = true;
  { const World world(options); }
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("DNS rebinding")));
}

TEST(Host, ARequestWithNoneOrSeveralIsRefused) {
  World world;
  for (const std::string_view headers : {"", "Host: localhost\r\nHost: localhost\r\n",
                                         "Host: localhost\r\nX-A: b\r\nhost: evil.example\r\n"}) {
    SCOPED_TRACE(headers);
    const auto answer = ask(world, headers);
    world.expect_problem(answer, 400, "malformed_request");
    EXPECT_EQ(answer.header("Connection"), "close");
  }
}

TEST_F(AuthTest, ARequestWithNoneOrSeveralHostsIsRefused) {
  world_.expect_problem(ask(world_, "", "GET /healthz HTTP/1.1"), 400, "malformed_request");
  world_.expect_problem(ask(world_, "Host: a\r\nHost: a\r\n", "GET /healthz HTTP/1.1"), 400,
                        "malformed_request");
  EXPECT_EQ(ask(world_, "Host: pawl.example\r\n", "GET /healthz HTTP/1.1").status, 200);
}

TEST(Origin, AWriteThatAnotherSiteBeginsIsRefusedAndChangesNothing) {
  World world;
  for (const std::string_view headers :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://localhost.evil.example\r\n",
        "Origin: http://localhost:3000\r\n", "Origin: http://127.0.0.1\r\n", "Origin: localhost\r\n",
        "Origin: \r\n", "Origin: http://localhost\r\nOrigin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: \r\n",
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n"}) {
    SCOPED_TRACE(headers);
    const auto answer = world.call("POST", "/v1/instances/door", kNewDoor, headers);
    world.expect_problem(answer, 403, "forbidden");
    EXPECT_THAT(answer.body, HasSubstr("another site"));
  }
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Origin, TheDashboardsOwnWritesPass) {
  World world;
  int number = 0;
  for (const std::string_view headers :
       {"Origin: http://localhost\r\n", "Origin: http://LOCALHOST:80\r\n",
        "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n",
        // Behind a proxy that gives the server another Host: the browser knows its page better.
        "Origin: https://pawl.example\r\nSec-Fetch-Site: same-origin\r\n"}) {
    const auto body = fmt::format(R"({{"key":"{}"}})", ++number);
    EXPECT_EQ(world.call("POST", "/v1/instances/door", body, headers).status, 201) << headers;
  }
}

TEST(Origin, AReadFromAnotherSitePassesBecauseItsAnswerCannotBeReadThere) {
  World world;
  EXPECT_EQ(world.call("GET", "/v1/machines", {}, "Sec-Fetch-Site: cross-site\r\n").status, 200);
}

TEST_F(AuthTest, AWriteThatAnotherSiteBeginsIsRefusedWhoeverSendsIt) {
  const auto by = admin();
  const auto cross = by.headers() + "Origin: https://evil.example\r\n";
  world_.expect_problem(world_.call("POST", "/v1/instances/door", kNewDoor, cross), 403, "forbidden");
  const auto with_token = bearer(token(by, "operator")) + "Sec-Fetch-Site: cross-site\r\n";
  world_.expect_problem(world_.call("POST", "/v1/instances/door", kNewDoor, with_token), 403, "forbidden");
  const auto login = fmt::format(R"({{"user":"admin","password":"{}"}})", kPassword);
  world_.expect_problem(world_.call("POST", "/v1/login", login, "Origin: https://evil.example\r\n"), 403,
                        "forbidden");
}

TEST_F(AuthTest, BehindAProxyThatKeepsTheHostTheDashboardsWritesPass) {
  const auto headers = fmt::format(
      "Host: pawl.example\r\nOrigin: https://pawl.example\r\n{}Content-Type: application/json\r\n"
      "Content-Length: {}\r\n",
      admin().headers(), kNewDoor.size());
  Client client(world_.server->port());
  client.send(fmt::format("POST /v1/instances/door HTTP/1.1\r\n{}\r\n{}", headers, kNewDoor));
  EXPECT_EQ(client.read().status, 201);
}

class Programs : public testing::Test {
 protected:
  ServerOptions options() {
    ServerOptions made;
    made.systems = {workers_.get()};
    return made;
  }
  std::unique_ptr<System> workers_ = workers::make_workers();
};

TEST_F(Programs, WithoutAuthNoRouteRunsThem) {
  World world(options());
  for (const auto& [method, path] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"PUT", "/v1/worker-tree"}, {"POST", "/v1/workers/x/run"}, {"POST", "/v1/workers/x/restart"}}) {
    SCOPED_TRACE(path);
    const auto answer = world.call(method, path, R"({"yaml":"children: []\n"})");
    world.expect_problem(answer, 403, "forbidden");
    EXPECT_THAT(answer.body, HasSubstr("allow_programs_without_auth"));
  }
  EXPECT_EQ(world.call("GET", "/v1/workers").status, 200);
}

TEST_F(Programs, WithoutAuthTheyRunWhereTheConfigurationSaysSo) {
  auto told = options();
  told.allow_programs_without_auth = true;
  World world(told);
  EXPECT_EQ(world.call("PUT", "/v1/worker-tree", R"({"yaml":"children: []\n"})").status, 200);
}

}  // namespace
}  // namespace pawl::test
