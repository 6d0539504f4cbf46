// SPDX-License-Identifier: Apache-2.0
// Connections and event streams are limited per address and per user, and the last ones are for operators.
#include "server/quota.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

#include "tests/server/auth_world.hpp"
#include "tests/server/reader.hpp"

namespace pawl::test {
namespace {

using server::Quota;
using server::QuotaLimits;
using server::QuotaSlot;
using testing::HasSubstr;

std::shared_ptr<Quota> quota(QuotaLimits limits) { return std::make_shared<Quota>("connections", limits); }

Code refused_with(const auto& result) { return result ? Code::internal : result.error().code(); }

TEST(Quota, AnAddressHasALimitAndReleasesItsSlots) {
  const auto all = quota({.all = 10, .per_address = 2, .per_user = 10});
  const auto first = all->acquire("a").value();
  auto second = all->acquire("a");
  EXPECT_EQ(refused_with(all->acquire("a")), Code::rate_limited);
  EXPECT_TRUE(all->acquire("b"));
  second = fail(Code::cancelled, "");
  EXPECT_TRUE(all->acquire("a"));
  EXPECT_EQ(all->refused(Quota::Limit::address), 1);
}

TEST(Quota, AUserHasALimitOverAllAddresses) {
  const auto all = quota({.all = 10, .per_address = 10, .per_user = 1});
  const auto first = all->acquire("a").value();
  const auto second = all->acquire("b").value();
  EXPECT_TRUE(all->assign(*first, "eve", false));
  EXPECT_TRUE(all->assign(*first, "eve", false)) << "the same slot again";
  EXPECT_EQ(refused_with(all->assign(*second, "eve", false)), Code::rate_limited);
  EXPECT_TRUE(second->must_close());
  EXPECT_FALSE(first->must_close());
  EXPECT_TRUE(all->assign(*second, "bob", false));
  EXPECT_FALSE(second->must_close());
}

TEST(Quota, ASlotThatChangesItsUserCountsForTheNewOne) {
  const auto all = quota({.all = 10, .per_address = 10, .per_user = 1});
  const auto shared = all->acquire("proxy").value();
  const auto other = all->acquire("proxy").value();
  EXPECT_TRUE(all->assign(*shared, "eve", false));
  EXPECT_TRUE(all->assign(*shared, "bob", false));
  EXPECT_TRUE(all->assign(*other, "eve", false));
}

TEST(Quota, TheLastSlotsAreForOperators) {
  const auto all = quota({.all = 8, .per_address = 8, .per_user = 8, .reserved = 2});
  std::vector<std::shared_ptr<QuotaSlot>> viewers;
  for (int i = 0; i < 6; ++i) {
    viewers.push_back(all->acquire("a").value());
    EXPECT_FALSE(viewers.back()->needs_operator());
    EXPECT_TRUE(all->assign(*viewers.back(), "eve", false));
  }
  const auto seventh = all->acquire("a").value();
  EXPECT_TRUE(seventh->must_close()) << "before anybody says who it is";
  EXPECT_EQ(refused_with(all->assign(*seventh, "eve", false)), Code::overloaded);
  EXPECT_TRUE(all->assign(*seventh, "root", true));
  EXPECT_FALSE(seventh->must_close());
  EXPECT_TRUE(all->assign(*viewers.front(), "eve", false)) << "one from before the flood stays";
  viewers.clear();
  EXPECT_TRUE(all->assign(*seventh, "eve", false)) << "others have gone";
}

TEST(Quota, AtMostAQuarterIsReserved) {
  const auto one = quota({.all = 1, .per_address = 1, .per_user = 1, .reserved = 32});
  const auto only = one->acquire("a").value();
  EXPECT_TRUE(one->assign(*only, "eve", false));
  EXPECT_EQ(refused_with(one->acquire("b")), Code::overloaded);
}

TEST(Connections, OneAddressDoesNotTakeAll) {
  ServerOptions options;
  options.limits.connections_per_address = 1;
  World world(std::move(options));
  Client first(world.server->port());
  EXPECT_EQ(first.call("GET", "/healthz").status, 200);
  Client second(world.server->port());
  const auto answer = second.read();
  world.expect_problem(answer, 429, "rate_limited");
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_TRUE(second.at_end());
  EXPECT_THAT(first.call("GET", "/metrics").body,
              HasSubstr("pawl_limited_total{what=\"connections\",limit=\"address\"} 1\n"));
}

TEST(Streams, OneAddressDoesNotTakeAll) {
  ServerOptions options;
  options.limits.streams_per_address = 1;
  World world(std::move(options));
  Reader first(world, "");
  EXPECT_THAT(first.head, HasSubstr("200 OK"));
  const auto answer = world.call("GET", "/v1/events");
  world.expect_problem(answer, 429, "rate_limited");
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_THAT(world.call("GET", "/metrics").body,
              HasSubstr("pawl_limited_total{what=\"streams\",limit=\"address\"} 1\n"));
  world.engine->create<door>("front").value();
  EXPECT_EQ(first.next().kind, "created");
}

class SmallQuota : public AuthTest {
 protected:
  SmallQuota() : AuthTest(cheap(), few()) {}

  static ServerOptions few() {
    ServerOptions options;
    options.limits.connections = 40;
    options.limits.connections_reserved = 10;
    options.limits.streams = 4;
    options.limits.streams_per_user = 2;
    return options;
  }

  /// Slots of connections are released some time after their clients have closed them.
  void wait_until_none_is_open(const std::string& admin_token) {
    const auto open = [&] {
      http::Request request{.path = "/metrics", .headers = {{"Authorization", "Bearer " + admin_token}}};
      return world_.server->handle(std::move(request)).body.find("\npawl_http_connections 0\n") ==
             std::string::npos;
    };
    while (open()) std::this_thread::yield();
  }
};

TEST_F(SmallQuota, AFloodOfViewersDoesNotLockTheOperatorOut) {
  const auto by = admin();
  const auto viewer = bearer(token(by, "viewer"));
  const auto operator_token = bearer(token(by, "operator"));
  wait_until_none_is_open(token(by, "admin"));
  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 30; ++i) {
    flood.push_back(std::make_unique<Client>(world_.server->port()));
    EXPECT_EQ(flood.back()->call("GET", "/v1/machines", {}, viewer).status, 200);
  }
  Client more(world_.server->port());
  const auto refused = more.call("GET", "/v1/machines", {}, viewer);
  world_.expect_problem(refused, 503, "overloaded");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  EXPECT_TRUE(more.at_end());
  Client operator_(world_.server->port());
  EXPECT_EQ(operator_.call("GET", "/v1/machines", {}, operator_token).status, 200);
  EXPECT_EQ(operator_.call("GET", "/v1/machines", {}, operator_token).status, 200) << "it stays open";
  EXPECT_EQ(flood.front()->call("GET", "/v1/machines", {}, viewer).status, 200);
}

TEST_F(SmallQuota, OnTheLastOnesAnOperatorCanLogIn) {
  const auto by = admin();
  const auto viewer = bearer(token(by, "viewer"));
  wait_until_none_is_open(token(by, "admin"));
  std::vector<std::unique_ptr<Client>> flood;
  for (int i = 0; i < 30; ++i) {
    flood.push_back(std::make_unique<Client>(world_.server->port()));
    EXPECT_EQ(flood.back()->call("GET", "/v1/machines", {}, viewer).status, 200);
  }
  const auto browser = log_in("admin", kPassword);
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, browser.headers()).status, 200);
}

TEST(Connections, OneOfTheReservedIsClosedSoonWhereNoWholeRequestComes) {
  ServerOptions options;
  options.limits.connections = 4;
  options.limits.connections_reserved = 1;
  options.limits.idle_timeout = options.limits.header_timeout = options.limits.body_timeout =
      std::chrono::hours(1);
  options.limits.reserved_timeout = std::chrono::milliseconds(50);
  for (const std::string_view part : {"", "GET /v1",
                                      "POST /v1/login HTTP/1.1\r\nHost: localhost\r\n"
                                      "Content-Type: application/json\r\n"
                                      "Content-Length: 100\r\n\r\n{"}) {
    SCOPED_TRACE(part);
    World world(options);
    std::vector<std::unique_ptr<Client>> flood;
    for (int i = 0; i < 3; ++i) {
      flood.push_back(std::make_unique<Client>(world.server->port()));
      EXPECT_EQ(flood.back()->call("GET", "/healthz").status, 200);
    }
    Client slow(world.server->port());
    slow.send(part);
    if (!part.empty()) world.expect_problem(slow.read(), 408, "slow_request");
    EXPECT_TRUE(slow.at_end());
    EXPECT_EQ(flood.front()->call("GET", "/healthz").status, 200) << "the others stay";
  }
}

TEST_F(SmallQuota, TokensOfTheSameNameAreCountedEachForItself) {
  const auto by = admin();
  const auto one = bearer(token(by, "viewer"));
  const auto other = bearer(token(by, "viewer"));
  wait_until_none_is_open(token(by, "admin"));
  Reader first(world_, "", one);
  Reader second(world_, "", one);
  world_.expect_problem(world_.call("GET", "/v1/events", {}, one), 429, "rate_limited");
  Reader third(world_, "", other);
  EXPECT_THAT(third.head, HasSubstr("200 OK"));
}

TEST_F(SmallQuota, OneUserDoesNotTakeAllStreams) {
  const auto by = admin();
  const auto viewer = bearer(token(by, "viewer"));
  Reader first(world_, "", viewer);
  Reader second(world_, "", viewer);
  const auto answer = world_.call("GET", "/v1/events", {}, viewer);
  world_.expect_problem(answer, 429, "rate_limited");
  EXPECT_EQ(answer.header("Retry-After"), "1");
}

TEST_F(SmallQuota, TheLastStreamIsForAnOperator) {
  const auto by = admin();
  make_user(by, "eve", "viewer");
  make_user(by, "bob", "viewer");
  const auto eve = log_in("eve", kPassword);
  const auto bob = log_in("bob", kPassword);
  const auto operator_token = bearer(token(by, "operator"));
  wait_until_none_is_open(token(by, "admin"));
  Reader first(world_, "", eve.headers());
  Reader second(world_, "", eve.headers());
  Reader third(world_, "", bob.headers());
  world_.expect_problem(world_.call("GET", "/v1/events", {}, bob.headers()), 503, "overloaded");
  Reader fourth(world_, "", operator_token);
  EXPECT_THAT(fourth.head, HasSubstr("200 OK"));
}

}  // namespace
}  // namespace pawl::test
