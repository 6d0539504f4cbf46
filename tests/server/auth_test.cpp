// SPDX-License-Identifier: Apache-2.0
// Passwords, tokens, cookies, and what an attacker tries. Every route with every role: matrix_test.cpp.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "pawl/sim_disk.hpp"
#include "server/secrets.hpp"
#include "tests/server/auth_world.hpp"
#include "tests/server/reader.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(AuthTest, TheOneTimePasswordIsGoodForChoosingAPasswordOnly) {
  const auto first = auth_->first_login().value();
  const auto answer = log_in_answer(first.user, first.password);
  EXPECT_EQ(member(answer.body, "must_change_password"), "true");
  const auto once = log_in(first.user, first.password);
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, once.headers()), 403, "forbidden");
  world_.expect_problem(world_.call("GET", "/v1/users", {}, once.headers()), 403, "forbidden");
  const auto by = admin();
  EXPECT_EQ(world_.call("GET", "/v1/users", {}, by.headers()).status, 200);
  world_.expect_problem(log_in_answer(first.user, first.password), 401, "unauthenticated");
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, once.headers()), 401, "unauthenticated");
}

TEST_F(AuthTest, ALoginCodeIsGoodOnceAndAtOnce) {
  const auto body = fmt::format(R"({{"code":"{}"}})", auth_->make_login_code().value());
  const auto answer = world_.call("POST", "/v1/login/code", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(member(answer.body, "must_change_password"), "false");
  const auto cookie = answer.header("Set-Cookie");
  const Browser browser{cookie.substr(0, cookie.find(';')), text_of(answer.body, "csrf")};
  // Although the administrator has a one-time password still.
  EXPECT_EQ(world_.call("GET", "/v1/users", {}, browser.headers()).status, 200);
  world_.expect_problem(world_.call("POST", "/v1/login/code", body), 401, "unauthenticated");
}

/// Whose monotonic clock a test can set forward.
class ShiftedRuntime final : public Runtime {
 public:
  Time now() override { return inside_.now(); }
  Instant instant() override { return inside_.instant() + shift; }
  std::uint64_t random() override { return inside_.random(); }
  std::unique_ptr<Lane> open_lane(std::string name) override { return inside_.open_lane(std::move(name)); }
  std::unique_ptr<ThreadPool> open_thread_pool(std::string name, ThreadPool::Options options) override {
    return inside_.open_thread_pool(std::move(name), options);
  }
  bool wait(Gate& gate, std::optional<Duration> timeout) override { return inside_.wait(gate, timeout); }
  bool fault(std::string_view) override { return false; }

  Duration shift{};

 private:
  ThreadRuntime inside_;
};

TEST(LoginCode, ItIsGoodForAnHour) {
  ShiftedRuntime runtime;
  sim::Disk disk(1);
  AuthOptions cheap;
  cheap.cheap_passwords = true;
  const auto auth = make_auth(cheap);
  Machines machines;
  auth->add_machines(machines);
  const auto engine =
      Engine::open(runtime, std::move(machines), {.store = "sqlite:pawl.db", .vfs = disk.vfs_name()}).value();
  auth->start(runtime, *engine).value();
  const auto routes = auth->routes(*engine);
  const auto route = std::ranges::find(routes, "log_in_with_code", &http::Route::id);
  const auto status_after = [&](Duration age) {
    http::Request request;
    request.body = fmt::format(R"({{"code":"{}"}})", auth->make_login_code().value());
    runtime.shift += age;
    const auto answer = route->run(request);
    return answer ? "logged in" : name(answer.error().code());
  };
  EXPECT_EQ(status_after(std::chrono::minutes(59)), "logged in");
  EXPECT_EQ(status_after(std::chrono::hours(1)), "unauthenticated");
}

TEST_F(AuthTest, ANewLoginCodeReplacesTheOneBefore) {
  const auto body = [](const std::string& code) { return fmt::format(R"({{"code":"{}"}})", code); };
  const auto old = auth_->make_login_code().value();
  const auto fresh = auth_->make_login_code().value();
  world_.expect_problem(world_.call("POST", "/v1/login/code", body(old)), 401, "unauthenticated");
  world_.expect_problem(world_.call("POST", "/v1/login/code", body("")), 401, "unauthenticated");
  EXPECT_EQ(world_.call("POST", "/v1/login/code", body(fresh)).status, 200);
}

TEST_F(AuthTest, ACookieIsForThisSiteAloneAndOutOfReachOfScripts) {
  const auto first = auth_->first_login().value();
  const auto cookie = log_in_answer(first.user, first.password).header("Set-Cookie");
  EXPECT_THAT(cookie, HasSubstr("; HttpOnly"));
  EXPECT_THAT(cookie, HasSubstr("; SameSite=Strict"));
  EXPECT_THAT(cookie, Not(HasSubstr("Secure")));  // this connection is not
}

TEST_F(AuthTest, AWriteWithACookieNeedsTheCsrfToken) {
  const auto by = admin();
  const std::string_view body = R"({"key":"front"})";
  world_.expect_problem(world_.call("POST", "/v1/instances/door", body, by.headers(false)), 403, "forbidden");
  auto forged = by;
  forged.csrf = std::string(43, 'A');
  world_.expect_problem(world_.call("POST", "/v1/instances/door", body, forged.headers()), 403, "forbidden");
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, by.headers(false)).status, 200);
  EXPECT_EQ(world_.call("POST", "/v1/instances/door", body, by.headers()).status, 201);
}

TEST_F(AuthTest, LoggingOutEndsTheLogin) {
  const auto by = admin();
  EXPECT_EQ(text_of(world_.call("GET", "/v1/me", {}, by.headers()).body, "user"), "admin");
  EXPECT_EQ(world_.call("POST", "/v1/logout", {}, by.headers()).status, 200);
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, by.headers()), 401, "unauthenticated");
  EXPECT_EQ(text_of(world_.call("GET", "/v1/me", {}, by.headers()).body, "user"), "anonymous");
}

TEST_F(AuthTest, WrongTokensAreRefused) {
  const auto by = admin();
  const auto good = token(by, "viewer");
  auto other = good;
  other.back() = other.back() == 'A' ? 'B' : 'A';
  for (const std::string& wrong : {other, good.substr(0, 22), std::string("pawl_"), std::string("x")}) {
    world_.expect_problem(world_.call("GET", "/v1/machines", {}, bearer(wrong)), 401, "unauthenticated");
  }
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, bearer(good)).status, 200);
}

TEST_F(AuthTest, ARevokedOrExpiredTokenIsRefusedAtOnce) {
  const auto by = admin();
  const auto revoked = token(by, "viewer");
  const auto id = revoked.substr(5, 16);
  EXPECT_THAT(world_.call("GET", "/v1/tokens", {}, by.headers()).body, HasSubstr(id));
  EXPECT_EQ(world_.call("DELETE", "/v1/tokens/" + id, {}, by.headers()).status, 204);
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, bearer(revoked)), 401, "unauthenticated");
  world_.expect_problem(world_.call("DELETE", "/v1/tokens/" + id, {}, by.headers()), 409,
                        "finished_instance");
  world_.expect_problem(world_.call("DELETE", "/v1/tokens/none", {}, by.headers()), 404, "unknown_instance");
  const auto expired = token(by, "viewer", R"(,"expires":"2020-01-01T00:00:00Z")");
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, bearer(expired)), 401, "unauthenticated");
}

TEST_F(AuthTest, AStreamEndsWhenItsTokenIsRevoked) {
  const auto by = admin();
  const auto stays = token(by, "viewer");
  const auto revoked = token(by, "viewer");
  Reader reader(world_, "", bearer(revoked));
  Reader other(world_, "", bearer(stays));
  EXPECT_EQ(world_.call("DELETE", "/v1/tokens/" + revoked.substr(5, 16), {}, by.headers()).status, 204);
  const auto end = reader.next();
  EXPECT_EQ(end.kind, "end");
  EXPECT_EQ(text_of(end.data, "code"), "unauthenticated");
  EXPECT_TRUE(reader.at_end());
  world_.engine->create<door>("front").value();
  EXPECT_EQ(text_of(other.next().data, "key"), "front");
}

TEST_F(AuthTest, AStreamEndsWhenItsUserIsRemovedOrChangedOrLogsOut) {
  const auto by = admin();
  const auto expect_end = [&](std::string_view method, const std::string& path, std::string_view body,
                              bool by_eve) {
    SCOPED_TRACE(path);
    make_user(by, "eve", "viewer");
    const auto eve = log_in("eve", kPassword);
    Reader reader(world_, "", eve.headers());
    EXPECT_LT(world_.call(method, path, body, (by_eve ? eve : by).headers()).status, 300);
    EXPECT_EQ(text_of(reader.next().data, "code"), "unauthenticated");
    EXPECT_TRUE(reader.at_end());
  };
  expect_end("POST", "/v1/logout", "", true);
  expect_end("PUT", "/v1/users/eve", R"({"role":"operator"})", false);
  expect_end("DELETE", "/v1/users/eve", "", false);
}

TEST_F(AuthTest, ARoleAndAPasswordAreGivenInOneStep) {
  const auto by = admin();
  make_user(by, "eve", "viewer");
  const auto before = world_.last_seq();
  EXPECT_EQ(
      world_
          .call("PUT", "/v1/users/eve", R"({"role":"operator","password":"chosen by another"})", by.headers())
          .status,
      200);
  EXPECT_EQ(world_.last_seq(), before + 1);
  const auto answer = log_in_answer("eve", "chosen by another");
  EXPECT_EQ(text_of(answer.body, "role"), "operator");
  EXPECT_EQ(member(answer.body, "must_change_password"), "true");
}

TEST_F(AuthTest, FailuresOfAnAddressAreLimited) {
  const auto by = admin();
  const auto good = token(by, "viewer");
  for (int i = 0; i < 5; ++i) {
    world_.expect_problem(log_in_answer(i % 2 == 0 ? "admin" : "nobody", "wrong"), 401, "unauthenticated");
  }
  const auto refused = log_in_answer("admin", kPassword);
  world_.expect_problem(refused, 429, "rate_limited");
  EXPECT_NE(refused.header("Retry-After"), "");
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, bearer(good + "x")), 429, "rate_limited");
  // Who is logged in already, or has a token that is good, is not an attacker.
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, bearer(good)).status, 200);
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, by.headers()).status, 200);
}

TEST_F(AuthTest, UsersAreMadeChangedAndRemoved) {
  const auto by = admin();
  const auto put = [&](std::string_view body) {
    return world_.call("PUT", "/v1/users/eve", body, by.headers());
  };
  world_.expect_problem(put(R"({"role":"viewer"})"), 400, "invalid_argument");
  world_.expect_problem(put(R"({"role":"viewer","password":"short"})"), 400, "invalid_argument");
  world_.expect_problem(put(R"({"role":"root","password":"long enough to do"})"), 400, "unknown_name");
  EXPECT_EQ(put(R"({"role":"viewer","password":"chosen by another"})").status, 200);
  const auto once = log_in("eve", "chosen by another");
  EXPECT_EQ(world_
                .call("POST", "/v1/password", R"({"old":"chosen by another","new":"chosen by eve"})",
                      once.headers())
                .status,
            200);
  auto eve = log_in("eve", "chosen by eve");
  world_.expect_problem(world_.call("POST", "/v1/instances/door", R"({"key":"a"})", eve.headers()), 403,
                        "forbidden");
  EXPECT_EQ(put(R"({"role":"operator"})").status, 200);
  eve = log_in("eve", "chosen by eve");
  EXPECT_EQ(world_.call("POST", "/v1/instances/door", R"({"key":"a"})", eve.headers()).status, 201);
  EXPECT_EQ(world_.call("DELETE", "/v1/users/eve", {}, by.headers()).status, 204);
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, eve.headers()), 401, "unauthenticated");
  world_.expect_problem(log_in_answer("eve", "chosen by eve"), 401, "unauthenticated");
  world_.expect_problem(world_.call("DELETE", "/v1/users/eve", {}, by.headers()), 404, "unknown_instance");
  EXPECT_EQ(put(R"({"role":"viewer","password":"chosen by another"})").status, 200);
}

TEST_F(AuthTest, AdministratorsCannotLockThemselvesOut) {
  const auto by = admin();
  world_.expect_problem(world_.call("DELETE", "/v1/users/admin", {}, by.headers()), 400, "invalid_argument");
  world_.expect_problem(world_.call("PUT", "/v1/users/admin", R"({"role":"viewer"})", by.headers()), 400,
                        "invalid_argument");
}

TEST_F(AuthTest, NamesHaveNoControlOrFormatCharactersAndAreBounded) {
  const auto by = admin();
  const std::string_view body = R"({"role":"viewer","password":"chosen by another"})";
  for (const std::string name : {"a%0Ab", "%1B%5B31m", "a%7F", "a%C2%9Bb", "%FF", "%C2", "a%00",
                                 // U+202E, U+2028, U+2029, U+200B, U+00AD, U+FEFF, U+E0041
                                 "nimda%E2%80%AE", "a%E2%80%A8b", "a%E2%80%A9b", "a%E2%80%8Bb", "a%C2%ADb",
                                 "%EF%BB%BFa", "a%F3%A0%81%81"}) {
    SCOPED_TRACE(name);
    world_.expect_problem(world_.call("PUT", "/v1/users/" + name, body, by.headers()), 400,
                          "invalid_argument");
  }
  world_.expect_problem(world_.call("PUT", "/v1/users/" + std::string(65, 'x'), body, by.headers()), 400,
                        "invalid_argument");
  EXPECT_EQ(world_.call("PUT", "/v1/users/J%C3%BCrgen%20%C2%A0%F0%9F%98%80", body, by.headers()).status, 200);
  world_.expect_problem(
      world_.call("POST", "/v1/tokens", R"({"name":"a\u001b","role":"viewer"})", by.headers()), 400,
      "invalid_argument");
  EXPECT_FALSE(recover_login(*world_.engine, "a\nb"));
}

TEST_F(AuthTest, NobodyRemovesOrDemotesTheLastAdministrator) {
  const auto by = admin();
  const auto root = bearer(token(by, "admin"));  // which is no user
  const auto before = world_.last_seq();
  world_.expect_problem(world_.call("DELETE", "/v1/users/admin", {}, root), 409, "guard_refused");
  world_.expect_problem(world_.call("PUT", "/v1/users/admin", R"({"role":"operator"})", root), 409,
                        "guard_refused");
  EXPECT_EQ(world_.last_seq(), before);
  make_user(by, "eve", "admin");
  EXPECT_EQ(world_.call("DELETE", "/v1/users/admin", {}, root).status, 204);
  world_.expect_problem(world_.call("DELETE", "/v1/users/eve", {}, root), 409, "guard_refused");
  EXPECT_EQ(log_in_answer("eve", kPassword).status, 200);
}

TEST_F(AuthTest, OfTwoAdministratorsThatAreRemovedAtOnceOneStays) {
  const auto root = bearer(token(admin(), "admin"));
  const std::string_view body = R"({"role":"admin","password":"chosen by another"})";
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(world_.call("PUT", "/v1/users/admin", body, root).status, 200);
    ASSERT_EQ(world_.call("PUT", "/v1/users/eve", body, root).status, 200);
    std::atomic<int> removed{0};
    {
      std::vector<std::jthread> both;
      for (const std::string path : {"/v1/users/admin", "/v1/users/eve"}) {
        both.emplace_back([&, path] {
          if (world_.call("DELETE", path, {}, root).status == 204) ++removed;
        });
      }
    }
    EXPECT_EQ(removed, 1);
  }
}

TEST_F(AuthTest, ARecoveredLoginIsGoodAndNoStartReplacesIt) {
  const auto login = recover_login(*world_.engine, "admin").value();
  const auto again = make_auth(cheap());
  again->start(world_.runtime, *world_.engine).value();
  EXPECT_FALSE(again->first_login());
  EXPECT_EQ(member(log_in_answer("admin", login.password).body, "must_change_password"), "true");
  world_.expect_problem(log_in_answer("admin", auth_->first_login()->password), 401, "unauthenticated");
}

TEST_F(AuthTest, RecoveryMakesAnAdministratorOfAnyName) {
  const auto by = admin();
  make_user(by, "eve", "viewer");
  EXPECT_EQ(world_.call("DELETE", "/v1/users/eve", {}, by.headers()).status, 204);
  for (const std::string name : {"eve", "new"}) {
    const auto login = recover_login(*world_.engine, name).value();
    EXPECT_EQ(text_of(log_in_answer(name, login.password).body, "role"), "admin");
  }
}

TEST_F(AuthTest, TheServersOwnMachinesAreNotShownNorChanged) {
  const auto by = admin();
  const auto all = bearer(token(by, "admin"));
  for (const std::string path : {"/v1/machines", "/v1/instances", "/v1/stats", "/v1/timers"}) {
    EXPECT_THAT(world_.call("GET", path, {}, all).body, Not(HasSubstr("pawl_user"))) << path;
  }
  for (const std::string path :
       {"/v1/machines/pawl_user", "/v1/instances/pawl_user/admin", "/v1/instances/pawl_user/admin/history",
        "/v1/instances?machine=pawl_token", "/v1/events?machine=pawl_user"}) {
    world_.expect_problem(world_.call("GET", path, {}, all), 404, "unknown_machine");
  }
  world_.expect_problem(
      world_.call("POST", "/v1/instances/pawl_user", R"({"key":"me","data":{"role":"admin"}})", all), 404,
      "unknown_machine");
  world_.expect_problem(
      world_.call("POST", "/v1/instances/pawl_user/admin/events", R"({"event":"RemoveUser"})", all), 404,
      "unknown_machine");
}

TEST_F(AuthTest, TheStoreHoldsNeitherPasswordsNorTokens) {
  const auto by = admin();
  const auto made = token(by, "viewer");
  std::string stored;
  for (const auto& file : std::filesystem::directory_iterator(world_.place)) {
    std::ifstream stream(file.path(), std::ios::binary);
    stored.append(std::istreambuf_iterator<char>(stream), {});
  }
  EXPECT_THAT(stored, HasSubstr("$argon2id$"));
  EXPECT_THAT(stored, HasSubstr(made.substr(5, 16)));  // its id
  EXPECT_THAT(stored, Not(HasSubstr(made.substr(22))));
  EXPECT_THAT(stored, Not(HasSubstr(kPassword)));
}

TEST_F(AuthTest, UsersAndTokensSurviveARestart) {
  const auto made = token(admin(), "viewer");
  world_.server.reset();
  world_.engine.reset();
  const auto again = make_auth(cheap());
  Machines machines;
  machines.add<door>();
  again->add_machines(machines);
  world_.engine =
      Engine::open(world_.runtime, machines, {.store = "sqlite:" + (world_.place / "pawl.db").string()})
          .value();
  again->start(world_.runtime, *world_.engine).value();
  EXPECT_FALSE(again->first_login());
  world_.server =
      Server::start(world_.runtime, *world_.engine, {.listen = "127.0.0.1:0", .auth = again.get()}).value();
  EXPECT_EQ(world_.call("GET", "/v1/machines", {}, bearer(made)).status, 200);
  EXPECT_EQ(log_in_answer("admin", kPassword).status, 200);
  world_.server.reset();
}

TEST_F(AuthTest, AFirstLoginThatNobodyUsedIsGivenAnewAtTheNextStart) {
  const auto again = make_auth(cheap());
  again->start(world_.runtime, *world_.engine).value();
  ASSERT_TRUE(again->first_login());
  EXPECT_NE(again->first_login()->password, auth_->first_login()->password);
  world_.expect_problem(log_in_answer("admin", auth_->first_login()->password), 401, "unauthenticated");
  EXPECT_EQ(log_in_answer("admin", again->first_login()->password).status, 200);
}

class ShortLogins : public AuthTest {
 protected:
  ShortLogins()
      : AuthTest([] {
          auto options = cheap();
          options.session = Duration(1);
          return options;
        }()) {}
};

TEST_F(ShortLogins, ALoginEnds) {
  const auto first = auth_->first_login().value();
  const auto once = log_in(first.user, first.password);
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, once.headers()), 401, "unauthenticated");
}

TEST(WithoutAuth, NamesFromElsewhereAreRefused) {
  World world;
  Client client(world.server->port());
  client.send("GET /v1/machines HTTP/1.1\r\nHost: evil.example:80\r\n\r\n");
  world.expect_problem(client.read(), 403, "forbidden");
  client.send("GET /v1/machines HTTP/1.1\r\nHost: 127.0.0.1:7420\r\n\r\n");
  EXPECT_EQ(client.read().status, 200);
}

TEST(Secrets, AreRandomAndOfTheRightForm) {
  EXPECT_EQ(server::random_secret().size(), 43);
  EXPECT_NE(server::random_secret(), server::random_secret());
  EXPECT_EQ(server::random_id().size(), 16);
  EXPECT_EQ(server::digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Secrets, APasswordIsVerifiedByItsHashOfTheRealCost) {
  const auto hash = server::hash_password("correct horse", false).value();
  EXPECT_THAT(hash, testing::StartsWith("$argon2id$v=19$m=65536,t=2,p=1$"));
  EXPECT_TRUE(server::verify_password(hash, "correct horse"));
  EXPECT_FALSE(server::verify_password(hash, "correct horsf"));
  EXPECT_FALSE(server::verify_password("", ""));
}

}  // namespace
}  // namespace pawl::test
