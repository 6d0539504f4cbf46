// SPDX-License-Identifier: Apache-2.0
// Who may do what: every route with every role, passwords, tokens, cookies, and what an attacker tries.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "server/secrets.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPassword = "correct horse battery";

std::string text_of(const std::string& json, std::string_view name) {
  const auto text = member(json, name);
  return text.size() < 2 ? std::string() : text.substr(1, text.size() - 2);
}

class AuthTest : public testing::Test {
 protected:
  explicit AuthTest(AuthOptions options = cheap())
      : auth_(make_auth(options)), world_(ServerOptions{.auth = auth_.get()}) {}

  static AuthOptions cheap() {
    AuthOptions options;
    options.cheap_passwords = true;
    options.failures = 5;
    return options;
  }

  struct Browser {
    std::string cookie;
    std::string csrf;
    std::string headers(bool with_csrf = true) const {
      return fmt::format("Cookie: other=1; {}\r\n{}", cookie,
                         with_csrf ? fmt::format("X-Pawl-CSRF: {}\r\n", csrf) : std::string());
    }
  };

  Answer log_in_answer(std::string_view user, std::string_view password) {
    return world_.call("POST", "/v1/login",
                       fmt::format(R"({{"user":"{}","password":"{}"}})", user, password));
  }
  Browser log_in(std::string_view user, std::string_view password) {
    const auto answer = log_in_answer(user, password);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto cookie = answer.header("Set-Cookie");
    return {cookie.substr(0, cookie.find(';')), text_of(answer.body, "csrf")};
  }
  /// The first administrator with a password of their own.
  Browser admin() {
    const auto first = auth_->first_login().value();
    const auto once = log_in(first.user, first.password);
    const auto changed =
        world_.call("POST", "/v1/password",
                    fmt::format(R"({{"old":"{}","new":"{}"}})", first.password, kPassword), once.headers());
    EXPECT_EQ(changed.status, 200) << changed.body;
    return log_in(first.user, kPassword);
  }
  std::string token(const Browser& by, std::string_view role, std::string_view more = {}) {
    const auto made = world_.call(
        "POST", "/v1/tokens", fmt::format(R"({{"name":"{0}","role":"{0}"{1}}})", role, more), by.headers());
    EXPECT_EQ(made.status, 201) << made.body;
    return text_of(made.body, "token");
  }
  static std::string bearer(std::string_view token) {
    return fmt::format("Authorization: Bearer {}\r\n", token);
  }

  std::unique_ptr<Auth> auth_;
  World world_;
};

struct Operation {
  std::string method;
  std::string path;
  http::Role role;
  bool has_body;
};

std::vector<Operation> operations(const std::string& document) {
  std::vector<Operation> all;
  const auto parsed = JsonDocument::parse(document).value();
  const auto paths = *parsed.root().find("paths");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::string path(paths.key_at(i));
    for (auto brace = path.find('{'); brace != std::string::npos; brace = path.find('{')) {
      path.replace(brace, path.find('}') - brace + 1, "x");
    }
    for (std::size_t j = 0; j < paths.at(i).size(); ++j) {
      std::string method(paths.at(i).key_at(j));
      for (auto& letter : method) letter = static_cast<char>(letter & ~0x20);
      const auto operation = paths.at(i).at(j);
      const auto role = *operation.find("x-role")->as_string();
      all.push_back({method, path, role == "anyone" ? http::Role::anyone : http::parse_role(role).value(),
                     operation.find("requestBody").has_value()});
    }
  }
  return all;
}

TEST_F(AuthTest, EveryRouteIsOpenToItsRoleAndThoseAboveAndToNobodyElse) {
  const auto by = admin();
  const std::vector<std::pair<http::Role, std::string>> callers{
      {http::Role::anyone, ""},
      {http::Role::viewer, bearer(token(by, "viewer"))},
      {http::Role::operator_, bearer(token(by, "operator"))},
      {http::Role::admin, bearer(token(by, "admin"))}};
  const auto all = operations(world_.call("GET", "/v1/openapi.json").body);
  EXPECT_GT(all.size(), 25);
  const auto before = world_.last_seq();
  for (const auto& operation : all) {
    for (const auto& [role, headers] : callers) {
      SCOPED_TRACE(fmt::format("{} {} as {}", operation.method, operation.path, name(role)));
      const auto answer =
          world_.call(operation.method, operation.path, operation.has_body ? "{}" : "", headers);
      if (role >= operation.role) {
        EXPECT_THAT(answer.status, testing::AllOf(Not(401), Not(403))) << answer.body;
      } else if (role == http::Role::anyone) {
        world_.expect_problem(answer, 401, "unauthenticated");
        EXPECT_EQ(answer.header("WWW-Authenticate"), "Bearer");
      } else {
        world_.expect_problem(answer, 403, "forbidden");
      }
    }
  }
  EXPECT_EQ(world_.last_seq(), before);
}

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

TEST_F(AuthTest, FailuresOfAnAddressAreLimited) {
  const auto by = admin();
  const auto good = token(by, "viewer");
  for (int i = 0; i < 5; ++i) {
    world_.expect_problem(log_in_answer(i % 2 == 0 ? "admin" : "nobody", "wrong"), 401, "unauthenticated");
  }
  const auto refused = log_in_answer("admin", kPassword);
  world_.expect_problem(refused, 429, "rate_limited");
  EXPECT_NE(refused.header("Retry-After"), "");
  world_.expect_problem(world_.call("GET", "/v1/machines", {}, bearer(good)), 429, "rate_limited");
  // Who is logged in already is not an attacker.
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
